//! Scratch.
#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::print_stdout,
    clippy::unwrap_used,
    dead_code,
    reason = "scratch"
)]
#[path = "../../../../tests/bench/src/scan/tree.rs"]
mod tree;
use steward_skill_scanner::*;
fn main() {
    let scanner = Scanner::new().unwrap();
    for (name, t) in [("skill", tree::skill()), ("line", tree::line())] {
        let r = scanner.scan(&t, &Options::default());
        println!(
            "{name} {} files {} bytes {} {:?}",
            t.len(),
            t.bytes(),
            r.verdict,
            r.findings
                .iter()
                .map(|f| (f.rule.clone(), f.excerpt.chars().take(60).collect::<String>()))
                .collect::<Vec<_>>()
        );
        let mut best = u128::MAX;
        for _ in 0..60 {
            let s = std::time::Instant::now();
            scanner.scan(&t, &Options::default());
            best = best.min(s.elapsed().as_micros());
        }
        println!("{name} best {best} us");
    }
}
