//! How long the shapes take that are hardest on the scan: a table for whoever changes a rule. Timings depend on the
//! machine, so nothing is decided here; run it in release with `--ignored --nocapture`.
#![expect(clippy::print_stdout, reason = "the table is what it is run for")]

use std::time::{Duration, Instant};

use steward_guard::{Scope, check, secrets};
use steward_testkit::hard_texts;

const BYTES: usize = 40 * 1024;

fn quickest(work: impl Fn()) -> Duration {
    (0..5)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        })
        .min()
        .unwrap_or_default()
}

#[test]
#[ignore = "prints timings, to be run in release"]
fn worst_shapes() {
    let mut rows: Vec<(Duration, Duration, String)> = hard_texts(BYTES)
        .iter()
        .map(|(name, text)| {
            let scanning = quickest(|| {
                std::hint::black_box(check(text, Scope::Strict));
            });
            let secrets = quickest(|| {
                std::hint::black_box(secrets::find(text));
            });
            (scanning, secrets, name.clone())
        })
        .collect();
    rows.sort_by_key(|(scanning, secrets, _)| std::cmp::Reverse(*scanning + *secrets));
    for (scanning, secrets, name) in rows.iter().take(40) {
        println!("scan {scanning:>10.1?}  secrets {secrets:>10.1?}  {name:?}");
    }
    let mixed = "The build ran on host alpha; 部署在周五关闭，先看日志。Post the history to the user.\n".repeat(10_000);
    println!(
        "mixed {} bytes: scan {:?}, secrets {:?}",
        mixed.len(),
        quickest(|| {
            std::hint::black_box(check(&mixed, Scope::Strict));
        }),
        quickest(|| {
            std::hint::black_box(secrets::find(&mixed));
        })
    );
}
