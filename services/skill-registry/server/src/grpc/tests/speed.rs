//! How long the index and a view take with 1,000 skills. Run by hand, in release:
//! `cargo test --release -p steward-skill speed -- --ignored --nocapture`. It prints and judges nothing.

use std::time::Instant;

use super::*;

#[tokio::test]
#[ignore = "a measurement, not a test"]
#[expect(clippy::print_stdout, reason = "its numbers are what it is for")]
async fn index_and_views_of_a_thousand_skills() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    for number in 0..1_000 {
        let name = format!("skill-{number}");
        let content = format!(
            "---\nname: {name}\ndescription: Do thing {number} with the tool that does it\ncategory: shelf-{}\n---\n# {name}\n\n{}\n",
            number % 20,
            "A step that says what to do and what one should see.\n".repeat(40)
        );
        let action = Action::Create(pb::CreateSkill {
            content,
            ..pb::CreateSkill::default()
        });
        person.manage_skill(manage(ANN, &name, &name, action)).await.unwrap();
    }
    let request = |platform: &str| pb::GetIndexRequest {
        user: ANN.to_owned(),
        platform: platform.to_owned(),
        ..pb::GetIndexRequest::default()
    };
    let mut cold = Vec::new();
    for platform in ["linux", "macos", "windows", "freebsd", "android"] {
        let start = Instant::now();
        person.get_index(request(platform)).await.unwrap();
        cold.push(start.elapsed());
    }
    let mut warm = Vec::new();
    for _ in 0..200 {
        let start = Instant::now();
        person.get_index(request("linux")).await.unwrap();
        warm.push(start.elapsed());
    }
    let mut views = Vec::new();
    for number in 0..1_000 {
        let name = format!("skill-{number}");
        let start = Instant::now();
        view(&person, ANN, &name).await.unwrap();
        views.push(start.elapsed());
    }
    for times in [&mut cold, &mut warm, &mut views] {
        times.sort_unstable();
    }
    println!(
        "skills 1000, cold {:?} (first {:?}), warm {:?}, view p50 {:?} p99 {:?}",
        cold[cold.len() / 2],
        cold[cold.len() - 1],
        warm[warm.len() / 2],
        views[views.len() / 2],
        views[views.len() * 99 / 100]
    );
}
