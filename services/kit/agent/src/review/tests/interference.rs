//! Non-interference (`R-3`): whatever stands in text from outside, wherever it comes in, and whatever the assistant does
//! after reading it, the request of the review is the same to the byte.

use proptest::prelude::*;
use steward_base::{Integrity, Span, SpanOrigin};
use steward_model::Message;

use super::super::*;
use super::{assistant, built, bytes, person, result, span};
use crate::kernel::{ToolOutput, pairing};

/// Stands in every text from outside that is not empty.
const MARK: &str = "ZXQ";

/// What happens next in a conversation.
#[derive(Debug, Clone)]
enum Step {
    Says(String),
    Steers(String),
    /// A person sends a text that they did not write: sent, not said.
    Attaches(String, Integrity),
    /// A person's words around pasted ones.
    Pastes(String),
    /// A tool answers; `true` is a part from outside.
    Looks(&'static str, Vec<bool>),
    /// As `Looks`, with labels that cross each other and the characters.
    LooksBadly,
    /// The assistant goes on by itself.
    Works,
}

fn step() -> impl Strategy<Value = Step> {
    let words = "[a-zä好 ]{1,70}";
    prop_oneof![
        2 => words.prop_map(Step::Says),
        1 => words.prop_map(Step::Steers),
        1 => (words, prop_oneof![Just(Integrity::External), Just(Integrity::UnknownTool)])
            .prop_map(|(text, integrity)| Step::Attaches(text, integrity)),
        1 => words.prop_map(Step::Pastes),
        3 => (
            prop_oneof![Just("fetch"), Just("session_search"), Just("skill_view"), Just("shell")],
            prop::collection::vec(any::<bool>(), 0..5),
        ).prop_map(|(tool, parts)| Step::Looks(tool, parts)),
        1 => Just(Step::LooksBadly),
        3 => Just(Step::Works),
    ]
}

/// One of the worlds that must not be told apart: the texts from outside, and what the assistant makes of them.
struct World {
    texts: Vec<String>,
    at: usize,
    influenced: bool,
    messages: Vec<ReviewMessage>,
}

impl World {
    fn play(texts: &[String], steps: &[Step]) -> Vec<ReviewMessage> {
        let mut world = Self {
            texts: texts.to_vec(),
            at: 0,
            influenced: false,
            messages: vec![person("m0", "hello")],
        };
        for step in steps {
            world.take(step);
        }
        world.messages
    }

    fn outside(&mut self) -> String {
        self.at += 1;
        let text = &self.texts[self.at % self.texts.len()];
        if text.is_empty() {
            String::new()
        } else {
            format!("{MARK}{text}")
        }
    }

    /// One to four, as this world has it.
    fn some(&mut self) -> usize {
        1 + self.outside().len() % 4
    }

    fn id(&self) -> String {
        format!("m{}", self.messages.len())
    }

    fn push(&mut self, message: ReviewMessage) {
        self.messages.push(message);
    }

    fn take(&mut self, step: &Step) {
        let id = self.id();
        match step {
            Step::Says(text) => self.push(person(&id, text)),
            Step::Steers(text) => {
                let mut message = person(&id, text);
                message.sent = Message::user(format!("<steering>\n{text}\n</steering>"));
                self.push(message);
            }
            Step::Attaches(text, integrity) => self.attach(&id, text, *integrity),
            Step::Pastes(text) => {
                let pasted = self.outside();
                let mut message = person(&id, &format!("{text}{pasted}."));
                let end = text.len() + pasted.len();
                let user = || SpanOrigin::User("maria".to_owned());
                message.spans = vec![
                    span(0, text.len(), user(), Integrity::Person),
                    span(text.len(), end, SpanOrigin::External(pasted), Integrity::External),
                    span(end, end + 1, user(), Integrity::Person),
                ];
                self.push(message);
                self.influenced = true;
            }
            Step::Looks(tool, parts) => self.look(tool, parts),
            Step::LooksBadly => self.look_badly(),
            Step::Works if self.influenced => self.obey(),
            Step::Works => self.push(assistant(&id, "I thought about it.", &[])),
        }
    }

    fn attach(&mut self, id: &str, text: &str, integrity: Integrity) {
        let mut message = person(id, text);
        let mut sent = text.to_owned();
        for _ in 0..self.some() {
            let attached = self.outside();
            sent.push_str(&attached);
            message
                .spans
                .push(span(text.len(), text.len(), SpanOrigin::External(attached), integrity));
        }
        message.sent = Message::user(sent);
        self.push(message);
        self.influenced = true;
    }

    /// Calls of which the tool's name, the arguments and the number are chosen under influence, their results, and words.
    fn obey(&mut self) {
        for _ in 0..self.some() {
            let (id, text) = (self.id(), self.outside());
            let names: Vec<String> = (0..self.some()).map(|at| format!("{id}-{at}")).collect();
            let calls: Vec<(&str, &str, &str)> = names
                .iter()
                .map(|name| (name.as_str(), text.as_str(), text.as_str()))
                .collect();
            self.push(assistant(&id, &text, &calls));
            for (call, name, _) in calls {
                let (result_id, failure) = (self.id(), self.outside());
                self.push(result(&result_id, call, name, &[(&failure, Integrity::Workspace)]));
            }
        }
    }

    fn look(&mut self, tool: &str, parts: &[bool]) {
        if self.influenced {
            return self.obey();
        }
        let id = self.id();
        let (first, second) = (format!("{id}-a"), format!("{id}-b"));
        self.push(assistant(
            &id,
            "Let me see.",
            &[(&first, tool, "{}"), (&second, "shell", "{}")],
        ));
        let mut texts = Vec::new();
        for outside in parts {
            let count = if *outside { self.some() } else { 1 };
            for _ in 0..count {
                let part = if *outside {
                    (self.outside(), Integrity::External)
                } else {
                    ("[7] tool: ".to_owned(), Integrity::Workspace)
                };
                texts.push(part);
            }
        }
        let texts: Vec<(&str, Integrity)> = texts
            .iter()
            .map(|(text, integrity)| (text.as_str(), *integrity))
            .collect();
        let answer = result(&self.id(), &first, tool, &texts);
        self.push(answer);
        let beside = result(&self.id(), &second, "shell", &[("clean tree", Integrity::Workspace)]);
        self.push(beside);
        // A result that nobody labelled is one of a tool that nobody knows.
        self.influenced = parts.is_empty() || parts.contains(&true);
    }

    fn look_badly(&mut self) {
        if self.influenced {
            return self.obey();
        }
        let id = self.id();
        let call = format!("{id}-a");
        self.push(assistant(&id, "", &[(&call, "fetch", "{}")]));
        let text = format!("好{MARK}{}好", self.outside());
        let mut message = result(&self.id(), &call, "fetch", &[(&text, Integrity::Workspace)]);
        let (all, outside) = (message.spans[0].clone(), SpanOrigin::External("page".to_owned()));
        message.spans = vec![
            span(1, text.len() - 1, outside, Integrity::External),
            Span { end: u32::MAX, ..all },
        ];
        self.push(message);
        self.influenced = true;
    }
}

fn worlds() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop_oneof![1 => Just(String::new()), 4 => "\\PC{1,60}"], 1..12)
}

proptest! {
    #[test]
    fn reviews_of_conversations_that_differ_in_outside_text_are_identical(
        one in worlds(), two in worlds(), steps in prop::collection::vec(step(), 1..24),
        both in any::<bool>(), digest in any::<bool>(),
    ) {
        let kinds = if both { Kinds::Both } else { Kinds::Memory };
        let model = if digest { ReviewModel::Other("small") } else { ReviewModel::Parent };
        let (one, two) = (World::play(&one, &steps), World::play(&two, &steps));
        let (one, two) = (built(&one, kinds, model), built(&two, kinds, model));
        prop_assert_eq!(bytes(&one.conversation), bytes(&two.conversation));
        prop_assert_eq!(one.hidden, two.hidden);
        prop_assert_eq!(pairing(&one.conversation.messages), Ok(()));
        let body = String::from_utf8(bytes(&one.conversation)).expect("UTF-8");
        prop_assert!(!body.contains(MARK), "{}", body);
        let cited = |review: &ReviewRequest| -> Vec<(String, bool, String)> {
            review.spans.spans().iter().map(|span| (span.id.clone(), span.hidden, span.opening.clone())).collect()
        };
        prop_assert_eq!(cited(&one), cited(&two));
    }

    #[test]
    fn what_a_review_finds_by_itself_is_hidden_in_the_same_way(
        one in worlds(), two in worlds(), parts in prop::collection::vec(any::<bool>(), 1..6), failed in any::<bool>(),
    ) {
        let found = |texts: &[String]| {
            let mut world = World { texts: texts.to_vec(), at: 0, influenced: false, messages: Vec::new() };
            world.look("session_search", &parts);
            let output = ToolOutput {
                content: world.messages[1].said.clone(),
                is_error: failed,
                spans: world.messages[1].spans.clone(),
            };
            let hidden = hide_output(output);
            (hidden.content, hidden.is_error)
        };
        prop_assert_eq!(found(&one), found(&two));
        prop_assert!(!found(&one).0.contains(MARK));
    }
}

/// The words of an attachment are sent and not said; its label has no length.
#[test]
fn an_attachment_never_reaches_the_review_and_workspace_ones_are_replayed() {
    let attached = |integrity: Integrity| {
        let mut message = person("m1", "sum this up");
        message.sent = Message::user("sum this up\n\nPAGE");
        message
            .spans
            .push(span(11, 11, SpanOrigin::External("a.html".to_owned()), integrity));
        built(
            &[message, assistant("m2", "PAGE says so", &[])],
            Kinds::Both,
            ReviewModel::Parent,
        )
    };
    for integrity in [Integrity::External, Integrity::UnknownTool] {
        let review = attached(integrity);
        assert_eq!((review.mode, review.hidden), (ReviewMode::Redacted, true));
        let body = String::from_utf8(bytes(&review.conversation)).expect("UTF-8");
        assert!(
            !body.contains("PAGE") && body.contains("sum this up[hidden: "),
            "{body}"
        );
    }
    let review = attached(Integrity::Workspace);
    assert_eq!((review.mode, review.hidden), (ReviewMode::Replay, false));
    assert_eq!(review.conversation.messages[0].content(), "sum this up\n\nPAGE");
}

#[test]
fn where_labels_overlap_the_lowest_holds() {
    let mut message = person("m1", "good EVIL good");
    message.spans.push(span(
        5,
        9,
        SpanOrigin::External("paste".to_owned()),
        Integrity::External,
    ));
    let review = built(&[message], Kinds::Both, ReviewModel::Parent);
    assert_eq!(
        review.conversation.messages[0].content(),
        "good [hidden: text from outside] good"
    );
    let standing: Vec<(u32, u32, bool)> = review
        .spans
        .spans()
        .iter()
        .map(|span| (span.start, span.end, span.hidden))
        .collect();
    assert_eq!(standing, [(0, 5, false), (5, 9, true), (9, 14, false)]);
}
