//! Secrets and conversations on their way out, and credentials being read out.

use super::{Negation, Rule, Shape, secret_file};
use crate::{Category, Scope, Severity};

const fn rule(
    id: &'static str,
    category: Category,
    severity: Severity,
    scope: Scope,
    shape: Shape,
    anchors: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    Rule {
        id,
        category,
        severity,
        scope,
        shape,
        negation: Negation::Excuses,
        anchors,
        pattern,
    }
}

pub(super) const RULES: &[Rule] = &[
    rule(
        "secret-in-url",
        Category::Exfiltration,
        Severity::Critical,
        Scope::All,
        Shape::Command,
        &["curl", "wget", "invoke-webrequest", "iwr"],
        r#"\b(?:curl|wget|invoke-webrequest|iwr)\b[^\n]{0,160}https?://[^\s"']{0,160}[?&/=.]\$\{?[a-z0-9_]{0,40}(?:key|token|secret|password|passwd|credential)"#,
    ),
    rule(
        "secret-in-body",
        Category::Exfiltration,
        Severity::Critical,
        Scope::All,
        Shape::Command,
        &["curl", "wget"],
        r#"\b(?:curl|wget)\b[^\n]{0,160}(?:-d|-f|--data(?:-[a-z]{2,10})?|--post-data|--form|--body-data)[ =]?["']?[^\n"']{0,60}\$\{?[a-z0-9_]{0,40}(?:key|token|secret|password|passwd|credential)"#,
    ),
    rule(
        "environment-in-request",
        Category::Exfiltration,
        Severity::Critical,
        Scope::All,
        Shape::Command,
        &["curl", "wget", "ncat", "nc ", "scp"],
        concat!(
            r"\b(?:curl|wget|ncat|nc|scp)\b[^\n]{0,160}(?:\$\((?:env|printenv)\b|`(?:env|printenv)\b|\$\((?:cat|base64)[^\n)]{0,60}",
            secret_file!(),
            r"|@[^\s]{0,60}",
            secret_file!(),
            ")"
        ),
    ),
    rule(
        "secrets-piped-out",
        Category::Exfiltration,
        Severity::Critical,
        Scope::All,
        Shape::Command,
        &["curl", "wget", "ncat", "nc ", "netcat"],
        concat!(
            r"(?:\b(?:env|printenv)\b|\b(?:cat|tar|base64|gzip)\b[^\n|]{0,80}",
            secret_file!(),
            r")[^\n]{0,60}\| ?[^\n]{0,60}\b(?:curl|wget|ncat|nc|netcat)\b"
        ),
    ),
    rule(
        "read-and-send",
        Category::Exfiltration,
        Severity::Critical,
        Scope::Context,
        Shape::Prose,
        &[
            "post",
            "send",
            "upload",
            "forward",
            "mail",
            "transmit",
            "exfiltrate",
            "submit",
            "leak",
            "paste",
        ],
        concat!(
            r"\b(?:read|open|cat|get|grab|take|copy|collect|find|fetch|load|print|extract|encode|send|post|upload|forward|email|e-mail|transmit|exfiltrate|submit|leak|paste)\b.{0,40}",
            secret_file!(),
            r".{0,60}(?:https?://|\b(?:post|send|upload|forward|email|e-mail|transmit|exfiltrate|submit|leak|paste)(?: (?:it|them|this|that|everything|the (?:contents?|result|output|file|keys?|values?)|its contents?)\b| to\b))"
        ),
    ),
    rule(
        "send-credentials",
        Category::Exfiltration,
        Severity::Critical,
        Scope::Context,
        Shape::Prose,
        &[
            "post",
            "send",
            "upload",
            "forward",
            "mail",
            "transmit",
            "exfiltrate",
            "submit",
            "leak",
        ],
        r"\b(?:send|post|upload|forward|email|e-mail|transmit|exfiltrate|submit|leak)\b.{0,12}\b(?:all|any|every|your|their|the user'?s?|users'|stored|found|my) (?:[a-z]{2,12} ){0,3}(?:api[ _-]?keys?|secrets?|credentials?|passwords?|access tokens?|tokens|private keys?|ssh keys?|environment variables?|session cookies?|env vars?)\b.{0,40}\b(?:to|at|via)\b.{0,40}(?:https?://|[a-z0-9.-]@[a-z0-9]|\b(?:attacker|webhook|external|remote|this (?:url|address|server|endpoint))\b)",
    ),
    rule(
        "send-conversation",
        Category::Exfiltration,
        Severity::High,
        Scope::Context,
        Shape::Prose,
        &["conversation", "history", "context", "prompt", "memory", "memories"],
        r"\b(?:send|post|upload|forward|transmit|exfiltrate|leak|submit)\b.{0,16}\b(?:this|the (?:entire|full|whole|current)|our|your|all) (?:[a-z]{2,12} )?(?:conversation|chat history|context window|context|system prompt|memory|memories)\b.{0,40}\bto\b.{0,24}(?:https?://|[a-z0-9.-]@[a-z0-9]|\bwebhook\b)",
    ),
    rule(
        "image-beacon",
        Category::Exfiltration,
        Severity::High,
        Scope::All,
        Shape::Command,
        &["!["],
        r"!\[[^\]\n]{0,80}\]\(https?://[^)\s]{0,200}[?&=/](?:\{{1,2}|\$\{|<|\[)[a-z_ -]{0,24}(?:secret|token|key|conversation|history|prompt|context|password|memory|data)",
    ),
    rule(
        "read-and-send-zh",
        Category::Exfiltration,
        Severity::Critical,
        Scope::Context,
        Shape::Prose,
        &[
            "发送", "上传", "发到", "发给", "提交", "外传", "传到", "传给", "發送", "上傳",
        ],
        concat!(
            r"(?:读取|打开|获取|收集|查看|复制|把|将|讀取).{0,120}(?:",
            secret_file!(),
            r"|密钥|私钥|密码|凭证|凭据|令牌|环境变量|金鑰).{0,120}(?:发送|上传|发到|发给|提交|外传|传到|传给|發送|上傳).{0,72}(?:https?://|[a-z0-9.-]@[a-z0-9]|外部|攻击者|远程服务器)"
        ),
    ),
    rule(
        "read-private-key",
        Category::CredentialAccess,
        Severity::High,
        Scope::Strict,
        Shape::Command,
        &[
            "id_",
            ".aws/credentials",
            ".netrc",
            ".pgpass",
            ".git-credentials",
            "/etc/shadow",
            "environ",
        ],
        r"\b(?:cat|less|more|head|tail|base64|xxd|strings|type|get-content) [^\n|;,]{0,40}(?:/id_(?:rsa|dsa|ecdsa|ed25519)(?:[^.\w]|\.[^p\w]|$)|\.aws/credentials|\.netrc\b|\.pgpass\b|\.git-credentials|/etc/shadow\b|/proc/(?:self|[0-9]{1,7})/environ)",
    ),
    rule(
        "print-credentials",
        Category::CredentialAccess,
        Severity::High,
        Scope::Strict,
        Shape::Prose,
        &["keys", "passwords", "credentials", "secrets", "tokens", "variables"],
        r"\b(?:print|reveal|dump|paste|leak|disclose|exfiltrate|steal|harvest|expose) (?:out )?(?:all |any )?(?:of )?(?:your|the user'?s?|users'|stored|every) (?:[a-z]{2,12} )?(?:api[ _-]?keys|passwords|credentials|private keys|secrets|access tokens|tokens|environment variables)\b|(?:^|[.!?;:\n] ?|\b(?:then|and|please|must|always) )(?:steal|harvest|exfiltrate)\b.{0,24}\b(?:keys|passwords|credentials|secrets|tokens)\b",
    ),
    rule(
        "steal-credentials-zh",
        Category::CredentialAccess,
        Severity::High,
        Scope::Strict,
        Shape::Prose,
        &["窃取", "盗取", "偷取"],
        r"(?:窃取|盗取|偷取).{0,36}(?:密钥|私钥|密码|凭证|凭据|令牌)",
    ),
];
