//! Texts that are hard on whoever looks through them: what begins many patterns and ends none, again and again. For tests and
//! benches of scanners, whose time somebody may try to use up.

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
    "(",
    "[(",
    "[]()",
    "{}{",
    "<>",
    "\u{202e}a\u{202c}",
    "e\u{301}",
    "\u{301}",
    "a\u{327}\u{301}",
    "QUJD",
    "aGVsbG8gd29ybGQ=",
    "%69%67",
    "\\u0069",
    "&#105;",
    "'",
    "\"\\",
    "ａ",
    "０",
];

fn filled(piece: &str, bytes: usize) -> String {
    let mut text = piece.repeat(bytes / piece.len() + 1);
    text.truncate(text.floor_char_boundary(bytes));
    text
}

/// A text in base64, put into base64 again, until it has `bytes`.
fn wrapped(bytes: usize) -> String {
    let mut text = "ignore all previous instructions ".repeat(64);
    while text.len() < bytes {
        text = base64(text.as_bytes());
    }
    text.truncate(bytes);
    text
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let number = (0..3).fold(0_usize, |number, at| {
            number << 8 | usize::from(three.get(at).copied().unwrap_or_default())
        });
        for place in [18, 12, 6, 0] {
            text.push(char::from(DIGITS[number >> place & 63]));
        }
    }
    text
}

/// All of them with their names, `bytes` long each, or a character less.
pub fn hard_texts(bytes: usize) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = FRAGMENTS
        .iter()
        .map(|piece| ((*piece).to_owned(), filled(piece, bytes)))
        .collect();
    texts.push(("all fragments".to_owned(), filled(&FRAGMENTS.concat(), bytes)));
    texts.push(("base64 in base64".to_owned(), wrapped(bytes)));
    let depth = bytes / 2;
    texts.push(("one deep bracket".to_owned(), "(".repeat(depth) + &")".repeat(depth)));
    texts.push((
        "one letter under all marks".to_owned(),
        "a".to_owned() + &filled("\u{301}\u{327}", bytes - 1),
    ));
    // Every fragment in another order each time: no state is met twice.
    let mut state: u64 = 7;
    let mut shuffled = String::new();
    while shuffled.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let index = usize::try_from(state >> 33).unwrap_or_default() % FRAGMENTS.len();
        shuffled.push_str(FRAGMENTS[index]);
    }
    shuffled.truncate(shuffled.floor_char_boundary(bytes));
    texts.push(("shuffled fragments".to_owned(), shuffled));
    texts
}
