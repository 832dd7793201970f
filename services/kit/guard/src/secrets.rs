//! Credentials by their shape: to keep them out of logs, previews and exports.
//!
//! Only shapes that are hardly ever anything else: a false alarm destroys what a person wrote. So what is assigned to a
//! `password` counts only if it looks made up or random; a word or a name behind it stays.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use crate::{Category, Finding, Severity};

struct Shape {
    id: &'static str,
    pattern: &'static str,
}

/// Kinds of credentials. `Regex` counts are bounded or single-class, so that a search is linear.
const SHAPES: &[Shape] = &[
    Shape {
        id: "aws-access-key",
        pattern: r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    },
    Shape {
        id: "aws-secret-key",
        pattern: r#"(?i)\baws_secret_access_key["']?\s{0,4}[=:]\s{0,4}["']?[A-Za-z0-9/+=]{40}"#,
    },
    Shape {
        id: "github-token",
        pattern: r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b",
    },
    Shape {
        id: "gitlab-token",
        pattern: r"\bgl(?:pat|dt|rt|cbt|ptt|soat|agent|ft|imt)-[A-Za-z0-9_-]{20,}",
    },
    Shape {
        id: "azure-key",
        pattern: r"\bAccountKey=[A-Za-z0-9+/]{86}==|\b[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
    },
    Shape {
        id: "cloud-token",
        pattern: r"\bdo[opr]_v1_[a-f0-9]{64}\b|\bdapi[a-f0-9]{32}\b|\bhvs\.[A-Za-z0-9_-]{24,}|\bAGE-SECRET-KEY-1[A-Z0-9]{58}\b",
    },
    Shape {
        id: "service-token",
        pattern: r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|\bdckr_pat_[A-Za-z0-9_-]{20,}|\bshp(?:at|ca|ss|pa)_[a-fA-F0-9]{32}\b|\blin_api_[A-Za-z0-9]{32,}\b",
    },
    Shape {
        id: "model-provider-key",
        pattern: r"\bsk-(?:ant-|proj-|svcacct-|admin-|or-)?[A-Za-z0-9_-]{20,}",
    },
    Shape {
        id: "slack-token",
        pattern: r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    },
    Shape {
        id: "slack-webhook",
        pattern: r"https://hooks\.slack\.com/services/[A-Za-z0-9/]{20,}",
    },
    Shape {
        id: "google-api-key",
        pattern: r"\bAIza[0-9A-Za-z_-]{35}|\bGOCSPX-[A-Za-z0-9_-]{28}",
    },
    Shape {
        id: "stripe-key",
        pattern: r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}\b|\bwhsec_[A-Za-z0-9+/]{24,}",
    },
    Shape {
        id: "npm-token",
        pattern: r"\bnpm_[A-Za-z0-9]{36}\b",
    },
    Shape {
        id: "pypi-token",
        pattern: r"\bpypi-[A-Za-z0-9_-]{50,}",
    },
    Shape {
        id: "hugging-face-token",
        pattern: r"\bhf_[A-Za-z0-9]{30,}\b",
    },
    Shape {
        id: "json-web-token",
        pattern: r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    },
    Shape {
        id: "bearer-header",
        pattern: r"(?i)\bauthorization\s{0,2}:\s{0,2}bearer\s{1,4}[A-Za-z0-9._~+/=-]{16,}",
    },
    Shape {
        id: "password-in-url",
        pattern: r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,64}:[^\s/@$<{*]{3,128}@[A-Za-z0-9]",
    },
    Shape {
        id: "private-key",
        pattern: PRIVATE_KEY,
    },
];

const PRIVATE_KEY: &str = r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----";

/// What stands behind the name of a secret; the value is the first group.
const ASSIGNED: &str = r#"(?i)(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)["']?\s{0,3}(?:=|:|=>|:=)\s{0,3}["'`]?([^\s"'`,;&|]{8,200})"#;
const ASSIGNED_ID: &str = "assigned-secret";

static VALUE: LazyLock<Regex> = LazyLock::new(|| single(ASSIGNED));
static ALL: LazyLock<RegexSet> = LazyLock::new(|| set(SHAPES));
static EACH: LazyLock<Vec<Regex>> = LazyLock::new(|| SHAPES.iter().map(|shape| single(shape.pattern)).collect());

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and every test of this module builds them"
)]
fn set(shapes: &[Shape]) -> RegexSet {
    RegexSet::new(shapes.iter().map(|shape| with_ascii_words(shape.pattern))).expect("valid patterns")
}

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and every test of this module builds them"
)]
fn single(pattern: &str) -> Regex {
    Regex::new(&with_ascii_words(pattern)).expect("a valid pattern")
}

/// Unicode word boundaries would force the slow engine on every text that is not plain ASCII.
fn with_ascii_words(pattern: &str) -> String {
    pattern.replace(r"\b", r"(?-u:\b)")
}

/// Finds credentials. In reading order, without overlaps; `rule` is the kind of credential.
pub fn find(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for index in ALL.matches(text) {
        let (Some(shape), Some(regex)) = (SHAPES.get(index), EACH.get(index)) else {
            continue;
        };
        for found in regex
            .find_iter(text)
            .filter(|found| is_plausible(shape.id, found.as_str()))
        {
            let end = if shape.pattern == PRIVATE_KEY {
                key_block_end(text, found.end())
            } else {
                found.end()
            };
            findings.push(Finding {
                start: found.start(),
                end,
                category: Category::Secret,
                rule: shape.id,
                severity: Severity::High,
            });
        }
    }
    findings.sort_unstable_by_key(|finding| (finding.start, usize::MAX - finding.end));
    let mut reached = 0;
    findings.retain(|finding| {
        let is_new = finding.start >= reached;
        reached = reached.max(finding.end);
        is_new
    });
    let assigned: Vec<Finding> = assigned(text)
        .filter(|one| {
            findings
                .iter()
                .all(|known| one.end <= known.start || known.end <= one.start)
        })
        .collect();
    findings.extend(assigned);
    findings.sort_unstable();
    findings
}

fn assigned(text: &str) -> impl Iterator<Item = Finding> {
    let values = VALUE.captures_iter(text).filter_map(|found| found.get(1));
    values.filter(|value| is_made_up(value.as_str())).map(|value| Finding {
        start: value.start(),
        end: value.end(),
        category: Category::Secret,
        rule: ASSIGNED_ID,
        severity: Severity::Medium,
    })
}

/// Whether a value is a password or random, rather than a word, an identifier, an expression or a place to fill in.
fn is_made_up(value: &str) -> bool {
    const EXPRESSION: [char; 14] = ['$', '<', '>', '{', '}', '(', ')', '[', ']', '*', '.', '\\', '/', ':'];
    const FILLED_IN: [&str; 7] = [
        "example",
        "changeme",
        "change-me",
        "your",
        "xxxx",
        "placeholder",
        "redacted",
    ];
    let lower = value.to_ascii_lowercase();
    // Random base64 may hold a slash or two; a path is all words.
    let expression = value.replace('/', "").contains(EXPRESSION) || (value.contains('/') && value.len() < 24);
    if expression || !value.is_ascii() || FILLED_IN.iter().any(|word| lower.contains(word)) {
        return false;
    }
    let has = |class: fn(&u8) -> bool| value.bytes().any(|byte| class(&byte));
    let (small, capital) = (has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    if has(|byte| b"!@^~".contains(byte)) {
        return (small || capital) && has(u8::is_ascii_digit);
    }
    let digits: Vec<bool> = value.bytes().map(|byte| byte.is_ascii_digit()).collect();
    let runs = digits
        .chunk_by(|one, next| one == next)
        .filter(|run| run.first() == Some(&true))
        .count();
    if small && capital {
        value.len() >= 16 && runs >= 2
    } else {
        (small || capital) && value.len() >= 24 && runs >= 5
    }
}

/// The text with each credential replaced by `[REDACTED: kind]`. Borrowed if there is none.
pub fn redact(text: &str) -> Cow<'_, str> {
    let findings = find(text);
    if findings.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    for finding in findings {
        clean.push_str(text.get(from..finding.start).unwrap_or_default());
        clean.push_str("[REDACTED: ");
        clean.push_str(finding.rule);
        clean.push(']');
        from = finding.end;
    }
    clean.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(clean)
}

/// `sk-` begins hyphenated names too, of small letters and short words; a key has digits, and capitals or a long run.
fn is_plausible(id: &str, text: &str) -> bool {
    if id != "model-provider-key" {
        return true;
    }
    let long_run = || text.split(['-', '_']).any(|run| run.len() >= 16);
    text.bytes().any(|byte| byte.is_ascii_digit()) && (text.bytes().any(|byte| byte.is_ascii_uppercase()) || long_run())
}

/// Up to the end marker; a block that was cut short ends where its base64 ends.
fn key_block_end(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let body = |character: char| character.is_ascii_alphanumeric() || " \t\r\n\\+/=:,.-".contains(character);
    let body_end = rest.find(|character| !body(character)).unwrap_or(rest.len());
    let marker = rest.get(..body_end).and_then(|block| {
        let begins = block.find("-----END")?;
        let closes = block.get(begins + 8..)?.find("-----")?;
        Some(begins + 8 + closes + 5)
    });
    from + marker.unwrap_or(body_end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Put together at run time, so that no scanner takes this file for a leak.
    fn samples() -> Vec<(&'static str, String)> {
        let letters = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dF2hJ4lM6n";
        let upper = letters.to_ascii_uppercase();
        vec![
            ("aws-access-key", format!("AKIA{}", &upper[..16])),
            ("aws-secret-key", format!("aws_secret_access_key = {letters}")),
            ("github-token", format!("ghp_{}", &letters[..36])),
            ("github-token", format!("github_pat_{letters}")),
            ("gitlab-token", format!("glpat-{}", &letters[..20])),
            ("model-provider-key", format!("sk-proj-{letters}")),
            ("model-provider-key", format!("sk-ant-api03-{letters}")),
            ("slack-token", format!("xoxb-{}", &letters[..24])),
            (
                "slack-webhook",
                format!("https://hooks.slack.com/services/T0/B0/{}", &letters[..24]),
            ),
            ("google-api-key", format!("AIza{}", &letters[..35])),
            ("stripe-key", format!("sk_live_{}", &letters[..24])),
            ("stripe-key", format!("whsec_{letters}")),
            ("google-api-key", format!("GOCSPX-{}", &letters[..28])),
            ("gitlab-token", format!("glrt-{}", &letters[..20])),
            ("azure-key", format!("AccountKey={letters}{letters}{}==", &letters[..6])),
            ("azure-key", format!("abc8Q~{}", &letters[..34])),
            ("service-token", format!("SG.{}.{letters}abc", &letters[..22])),
            ("service-token", format!("dckr_pat_{}", &letters[..27])),
            ("cloud-token", format!("hvs.{letters}")),
            ("assigned-secret", "DB_PASSWORD=Summer2026!pine".to_owned()),
            ("assigned-secret", format!("client_secret: {}", &letters[..24])),
            (
                "assigned-secret",
                format!("apiKey => {}", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"),
            ),
            ("npm-token", format!("npm_{}", &letters[..36])),
            ("pypi-token", format!("pypi-{letters}{letters}")),
            ("hugging-face-token", format!("hf_{}", &letters[..34])),
            (
                "json-web-token",
                format!("eyJ{}.eyJ{}.{}", &letters[..20], &letters[..30], &letters[..20]),
            ),
            ("bearer-header", format!("Authorization: Bearer {letters}")),
            ("password-in-url", "postgres://app:hunter22@db.internal/app".to_owned()),
            (
                "private-key",
                format!(
                    "-----BEGIN OPENSSH {0}-----\n{letters}\n-----END OPENSSH {0}-----",
                    "PRIVATE KEY"
                ),
            ),
        ]
    }

    #[test]
    fn known_shapes_are_found_and_redacted() {
        for (kind, sample) in samples() {
            let text = format!("before \"{sample}\" after");
            let found: Vec<_> = find(&text).iter().map(|finding| finding.rule).collect();
            assert_eq!(found, [kind], "{sample}");
            let clean = redact(&text);
            assert!(
                clean.starts_with("before \"") && clean.ends_with("\" after") || kind == "password-in-url",
                "{clean}"
            );
            assert!(clean.contains(&format!("[REDACTED: {kind}]")), "{clean}");
            assert!(find(&clean).is_empty(), "{clean}");
        }
    }

    #[test]
    fn a_key_block_that_was_cut_short_is_redacted_to_its_end() {
        let text = format!("-----BEGIN RSA {}-----\nMIIEpAIBAAKCAQEA0\nabc", "PRIVATE KEY");
        assert_eq!(redact(&text), "[REDACTED: private-key]");
    }

    #[test]
    fn ordinary_text_passes() {
        for text in [
            "sk-learn-compatible-estimators-are-nice-to-have",
            "The token expires after 15 minutes; the password is in the vault.",
            "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
            "https://example.com/path?key=value and postgres://localhost/app",
            "postgres://user:${DB_PASSWORD}@db/app or postgres://user:<password>@db/app",
            "task-force-and-risk-assessment-2026-report",
            "Authorization: Bearer $TOKEN",
            "the key id is AKIA-something and the header is eyJ",
            "密码在保险库里",
            "sk-learn-0-24-compatible-estimators-are-here",
            "password: the one from the vault; secret = see 1Password",
            "token = process.env.GITHUB_TOKEN_V2 and api_key=os.environ[\"API_KEY_1\"]",
            "secret: Ed25519SigningKey, token: TokenKind2, password: PasswordFieldMode1",
            "secret: my-k8s-namespace-prod2-db-credentials",
            "the secret_name: prod/db/main2/password3/of-the-app",
            "password=${DB_PASSWORD_2} or password=<your-password-1!> or password=$(pass show db1)",
            "https://example.com/login?token=abc&page=12&sort=asc",
            "max_token: 128000 and token_count=1234567890123456",
            "API_KEY=your-api-key-goes-here-123456789",
            "PASSWORD=changeme123! in the example file",
            "access_key: AKIA-something-2",
            "password: at least 12 characters, 1 digit, 1 sign!",
        ] {
            assert_eq!(find(text), Vec::new(), "{text}");
            assert!(matches!(redact(text), Cow::Borrowed(_)));
        }
    }

    proptest! {
        #[test]
        fn nothing_but_the_secret_is_lost(before in "[a-z ]{0,20}", after in "[a-z ]{0,20}", pick in 0..samples().len()) {
            let samples = samples();
            let (kind, sample) = &samples[pick];
            let text = format!("{before}\n{sample}\n{after}");
            let clean = redact(&text).into_owned();
            let expected_start = format!("{before}\n");
            let expected_end = format!("\n{after}");
            prop_assert!(clean.starts_with(&expected_start));
            prop_assert!(clean.ends_with(&expected_end));
            prop_assert!(clean.contains(kind));
        }
    }
}
