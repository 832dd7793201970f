//! Folders outside: how they are sorted, and how rows follow them.

use steward_base::{Fault as _, Role};

use super::*;
use crate::index::Filter;
use crate::list_skills::{Broken, ListRequest};
use crate::testing::{Rig, person, rig, skill_md};

#[derive(Debug, Default)]
struct Shelf(Mutex<Option<Arc<ExternalFolder>>>);

impl Shelf {
    fn put(&self, generation: u64, list: &[(&str, &[u8])]) {
        let files = list
            .iter()
            .map(|(path, bytes)| ((*path).to_owned(), Ok(bytes.to_vec())))
            .collect();
        let mut folder = ExternalFolder::sort(&files, &Settings::default());
        folder.generation = generation;
        *self.0.lock().unwrap() = Some(Arc::new(folder));
    }
}

impl ExternalSource for Shelf {
    fn current(&self, _: &TeamId) -> Option<Arc<ExternalFolder>> {
        self.0.lock().unwrap().clone()
    }
}

fn with_shelf() -> (Rig, Arc<Shelf>) {
    let (mut rig, shelf) = (rig(), Arc::new(Shelf::default()));
    rig.skills = rig.skills.with_external(Arc::clone(&shelf) as _);
    (rig, shelf)
}

/// D-16.
#[tokio::test]
async fn one_bad_skill_is_listed_with_its_reason_and_hides_no_other() {
    let (rig, shelf) = with_shelf();
    let (one, two) = (skill_md("one", "First"), skill_md("two", "Second"));
    shelf.put(
        1,
        &[
            ("one/SKILL.md", one.as_bytes()),
            ("ops/two/SKILL.md", two.as_bytes()),
            (
                "colon/SKILL.md",
                b"---\nname: colon\ndescription: Fix CI: rerun flaky jobs\n---\nb",
            ),
            ("gbk/SKILL.md", b"---\nname: gbk\ndescription: \xc4\xe3\xba\xc3\n---\nb"),
            ("open/SKILL.md", b"---\nname: open\ndescription: d\n"),
            ("Bad Name/SKILL.md", one.as_bytes()),
        ],
    );
    let ann = person("ann", Role::Member);
    let listed = rig.skills.list_skills(&ann, &ListRequest::default()).await.unwrap();
    let names = listed
        .skills
        .iter()
        .filter(|skill| skill.scope == Scope::External)
        .map(SkillRecord::full_name);
    assert_eq!(names.collect::<Vec<_>>(), ["external/one", "external/ops/two"]);
    let broken = listed.broken.iter().map(|broken| match broken {
        Broken::Header(record, problem) => (record.full_name(), problem.clone()),
        Broken::Outside(outside) => (outside.folder.clone(), outside.problem.clone()),
        Broken::Record(_) => panic!("no record is damaged"),
    });
    let broken = broken.collect::<BTreeMap<_, _>>();
    assert_eq!(
        broken.keys().map(String::as_str).collect::<Vec<_>>(),
        ["Bad Name", "external/colon", "external/gbk", "external/open"]
    );
    assert!(broken.values().all(|problem| problem.len() > 10), "{broken:?}");
    assert!(broken["external/gbk"].contains("UTF-8"), "{broken:?}");
    let index = rig.skills.get_index(&ann, &Filter::default()).await.unwrap();
    assert!(
        index.text.contains("- one: First\n") && !index.text.contains("colon"),
        "{}",
        index.text
    );
}

/// D-17: the names in a list, the index and a view agree.
#[tokio::test]
async fn a_name_that_stands_twice_is_shown_in_full_and_never_guessed() {
    let (rig, shelf) = with_shelf();
    let text = skill_md("backup", "Back up");
    shelf.put(
        1,
        &[
            ("ops/backup/SKILL.md", text.as_bytes()),
            ("home/tools/backup/SKILL.md", text.as_bytes()),
        ],
    );
    let ann = person("ann", Role::Member);
    let full = ["external/home/tools/backup", "external/ops/backup"];
    let index = rig.skills.get_index(&ann, &Filter::default()).await.unwrap();
    let listed = rig.skills.list_skills(&ann, &ListRequest::default()).await.unwrap();
    for name in full {
        assert!(index.text.contains(&format!("- {name}: ")) && listed.tool_text.contains(&format!("- {name}: ")));
    }
    let refused = rig.skills.view_skill(&ann, "backup", "").await.unwrap_err();
    assert_eq!(refused.reason(), "SKILL_AMBIGUOUS");
    assert!(full.iter().all(|name| refused.to_string().contains(name)), "{refused}");
    for name in ["ops/backup", "home/tools/backup", "ops:backup", full[0]] {
        assert!(rig.skills.view_skill(&ann, name, "").await.is_ok(), "{name}");
    }
    for entry in index
        .shown
        .iter()
        .filter(|entry| entry.resource.starts_with("externals/"))
    {
        let viewed = rig.skills.view_skill(&ann, &entry.resource, "").await.unwrap();
        assert_eq!(viewed.skill.revision, entry.revision);
    }
}

/// D-56 and `S-6`: a running session keeps its prompt, everything else follows the folder; nobody writes to it.
#[tokio::test]
async fn rows_follow_the_folder_and_keep_their_history() {
    let (rig, shelf) = with_shelf();
    let ann = person("ann", Role::Admin);
    let text = skill_md("one", "First");
    shelf.put(1, &[("one/SKILL.md", text.as_bytes())]);
    assert_eq!(rig.text(&ann, "one").await, text);
    let record = rig.skills.resolve_active(&ann, "one").await.unwrap();
    assert_eq!((record.provenance, record.usage.views), (Provenance::External, 1));
    let patch = crate::manage_skill::Manage::Delete { absorbed_into: None };
    assert_eq!(
        rig.manage(&ann, "one", patch).await.unwrap_err().reason(),
        "GATE_REFUSED"
    );
    let changed = text.replace("Steps.", "Other steps.");
    shelf.put(2, &[("one/SKILL.md", changed.as_bytes())]);
    assert_eq!(rig.text(&ann, "one").await, changed);
    shelf.put(3, &[]);
    assert_eq!(
        rig.skills.view_skill(&ann, "one", "").await.unwrap_err().reason(),
        "ARCHIVED"
    );
    shelf.put(4, &[("one/SKILL.md", changed.as_bytes())]);
    let back = rig.skills.resolve_active(&ann, "one").await.unwrap();
    assert_eq!((back.uid, back.number, back.usage.views), (record.uid, 4, 2));
}

/// D-55.
#[test]
fn a_folder_is_a_skill_or_a_category_and_nothing_inside_a_skill_is_one() {
    let text = skill_md("letters", "x");
    let ok = || Ok(text.clone().into_bytes());
    let files = BTreeMap::from([
        ("mail/letters/SKILL.md".to_owned(), ok()),
        ("mail/letters/references/invoice/SKILL.md".to_owned(), ok()),
        ("mail/letters/templates/invoice.md".to_owned(), ok()),
        ("mail/README.md".to_owned(), ok()),
        ("SKILL.md".to_owned(), ok()),
        ("mail/locked/SKILL.md".to_owned(), Err("permission denied".to_owned())),
    ]);
    let sorted = ExternalFolder::sort(&files, &Settings::default());
    assert_eq!(sorted.skills.len(), 1);
    assert_eq!(
        (sorted.skills[0].category.as_str(), sorted.skills[0].files.len()),
        ("mail", 3)
    );
    assert_eq!(sorted.problems.len(), 2, "{:?}", sorted.problems);
}
