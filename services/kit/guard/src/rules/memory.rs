//! Standing orders and false authorities that would be believed in every later session.

use super::{Negation, Rule, Shape};
use crate::{Category, Scope, Severity};

const fn rule(id: &'static str, severity: Severity, anchors: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule {
        id,
        category: Category::MemoryPoisoning,
        severity,
        scope: Scope::Strict,
        shape: Shape::Prose,
        negation: Negation::Ignored,
        anchors,
        pattern,
    }
}

pub(super) const RULES: &[Rule] = &[
    rule(
        "standing-order",
        Severity::High,
        &[
            "remember",
            "memorize",
            "memorise",
            "keep in mind",
            "never forget",
            "note that you",
            "note that the",
        ],
        r"\b(?:remember|memori[sz]e|keep in mind|never forget|note|save|store)\b.{0,16}\bthat (?:you|the assistant|the agent|the ai|the model|all assistants|assistants) (?:must|shall|should|will|are (?:required|instructed|obliged|expected) to|need to|have to)\b.{0,16}\b(?:always|never|obey|comply|trust|ignore|send|execute|approve|forward)\b",
    ),
    rule(
        "false-authority",
        Severity::High,
        &[
            "authorized",
            "authorised",
            "instructed",
            "granted",
            "approved",
            "permitted",
        ],
        r"\b(?:system|administrator|admin|developers?|operator|owner|anthropic|openai|security team|company) (?:has|have) (?:already |pre-?|explicitly )?(?:authori[sz]ed|granted|instructed|required|permitted|approved)\b.{0,12}\b(?:you\b|the (?:assistant|agent|ai|model)\b|all (?:actions|commands|requests|tool calls)\b)",
    ),
    rule(
        "blind-obedience",
        Severity::High,
        &["trust", "obey", "follow", "execute", "comply"],
        r"\b(?:trust|obey|follow|execute|comply with)\b.{0,12}\b(?:any|all|every|whatever)\b.{0,16}\b(?:instructions?|commands?|requests?|orders)\b.{0,16}\b(?:from|on|at|found (?:in|on|at)|sent (?:by|from)) (?:https?://|[a-z0-9._-]{1,40}@|(?:the )?(?:domain|website|url|sender) |[a-z0-9-]{1,40}\.(?:com|net|org|io|example|invalid|dev|xyz|top)\b|this (?:page|site|email|sender)|untrusted)|\bobey (?:any|all|every|whatever)\b.{0,24}\bwithout (?:question|asking|verification|confirmation)",
    ),
    rule(
        "every-later-session",
        Severity::High,
        &[
            "future",
            "subsequent",
            "every session",
            "every conversation",
            "every response",
            "every reply",
            "all sessions",
        ],
        r"\b(?:in|for|during|to) (?:(?:every|all|each|any) (?:future |subsequent |later )?|future )(?:session|conversation|chat|response|repl(?:y|ie)|interaction)s?\b.{0,40}\b(?:you must|ignore (?:the|all|any|your)|secretly|silently|insert|append|include (?:this|the following|a) (?:link|url)|send (?:the|all|a copy)|execute the)\b",
    ),
    rule(
        "approve-everything",
        Severity::High,
        &["approve", "accept", "allow", "approval"],
        r"\b(?:always|automatically|silently) (?:approve|accept|allow)\b.{0,8}\b(?:all|every|any)\b.{0,24}\b(?:commands?|tool calls?|requests?|actions?|permissions?)\b|\b(?:skip|bypass|disable|never ask for)\b.{0,12}\bapprovals? (?:checks? )?(?:for|on) (?:all|any|every)\b.{0,24}\b(?:commands?|tool calls?|actions?)\b",
    ),
    rule(
        "trusted-source",
        Severity::Medium,
        &["remember", "always"],
        r"\b(?:remember|always (?:treat|cite|recommend|regard))\b.{0,40}\bas (?:a|the|an) (?:most |only |single )?(?:trusted|authoritative|reliable) (?:source|authority|website|provider|vendor)\b",
    ),
    rule(
        "sleeper",
        Severity::High,
        &["secretly", "silently", "without telling"],
        r"\b(?:when|if|whenever|once) (?:the |a )?(?:user|human|owner) (?:says|asks|types|mentions|writes)\b.{0,80}\b(?:secretly|silently|without telling)\b.{0,24}\b(?:send|run|execute|delete|forward|upload|call|add|insert)\b",
    ),
    rule(
        "standing-order-zh",
        Severity::High,
        &["记住", "牢记", "無條件", "无条件", "記住"],
        r"(?:记住|牢记|記住)(?:了)?[:,]? ?(?:你|您|助手|智能体|模型)(?:必须|应该|应当|要|需要|将|只能|以后)(?:永远|始终|总是|一直|无条件|服从|忽略|执行|发送|信任|都)|(?:无条件|無條件)(?:地)?(?:信任|服从|执行|遵守|服從).{0,48}(?:指令|命令|请求|要求)",
    ),
    rule(
        "every-later-session-zh",
        Severity::High,
        &["以后", "今后", "未来", "每次"],
        r"(?:以后|今后|从今以后|未来)(?:的)?(?:每次|所有|每个|每一次)?(?:的)?(?:对话|会话|回复|回答)(?:中|里|时)?,?.{0,36}(?:忽略(?:用户|所有|之前)|悄悄|发送给|附上链接|插入链接|执行以下)",
    ),
];
