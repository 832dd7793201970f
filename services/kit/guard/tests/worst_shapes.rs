//! How long the shapes take that are hardest on the scan: a table for whoever changes a rule. Timings depend on the
//! machine, so nothing is decided here; run it in release with `--ignored --nocapture`.
#![expect(clippy::print_stdout, reason = "the table is what it is run for")]

use std::time::{Duration, Instant};

use steward_guard::{Scope, check, secrets};

const BYTES: usize = 40 * 1024;

/// Fragments that begin what rules look for, so that as much as possible is tried and nothing is found.
const FRAGMENTS: &[&str] = &[
    "ignore all ",
    "ignore all of the your my our ",
    "send all your ",
    "send post upload ",
    "read open cat get .ssh/ab ",
    "curl http://a.b/?",
    "curl wget nc ",
    "curl ",
    "wget -d ",
    "rm -rf ",
    "rm -a -b ",
    "dd if=/dev/zero ",
    "/dev/tcp/",
    "<!-- ",
    "<a ",
    "<a display:none ",
    "[//]: # (",
    "[//]:#(",
    "you are now ",
    "decode and ",
    "decode ",
    "remember that you ",
    "note that you must ",
    "in every session ",
    "in future sessions ",
    "when the user says ",
    "trust any ",
    "* * * cron ",
    "| crontab -",
    "authorized_keys ",
    "ssh-rsa aaaa",
    "system: ",
    "\nsystem: ",
    "you have no ",
    "pretend ",
    "act as ",
    "reveal your ",
    "do not tell user ",
    "忽略你我所有一切",
    "读取",
    "把密码",
    "删除所有",
    "发送",
    "以后每次",
    "假装",
    "翻译",
    "base64 -d curl ",
    "env cat .netrc ",
    "secret_key=",
    "password",
    "token: ",
    "a_token=b",
    "sk-",
    "eyJaaaaaaaaaaaa.",
    "eyJaaaaaaaaaaaaeyJ",
    "a-",
    "aaaaaaaa://",
    "http://a:",
    "-----BEGIN ",
    "AccountKey=",
    "abc8Q~",
    "aws_secret_access_key ",
    "authorization: ",
    "![a](http://",
    "![",
    "never ",
    "modify agents.md ",
    " ",
    "\n",
    "a",
    "a ",
    "\u{200b}",
    "\u{fdfa}",
    "한",
    "か\u{3099}",
    "𝓲",
    "é",
    "\u{1f3f4}\u{e0067}",
    "\u{e0067}",
    "a\u{fe0f}",
];

fn filled(piece: &str) -> String {
    let mut text = piece.repeat(BYTES / piece.len() + 1);
    text.truncate(text.floor_char_boundary(BYTES));
    text
}

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
    let mut texts: Vec<(String, String)> = FRAGMENTS
        .iter()
        .map(|piece| ((*piece).to_owned(), filled(piece)))
        .collect();
    texts.push(("all fragments".to_owned(), filled(&FRAGMENTS.concat())));
    // Every fragment in another order each time: no state is met twice.
    let mut state: u64 = 7;
    let mut shuffled = String::new();
    while shuffled.len() < BYTES {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let index = usize::try_from(state >> 33).unwrap() % FRAGMENTS.len();
        shuffled.push_str(FRAGMENTS[index]);
    }
    texts.push(("shuffled fragments".to_owned(), shuffled));
    let mut rows: Vec<(Duration, Duration, String)> = texts
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
