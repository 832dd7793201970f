//! What goes on beside turns, as a test wants it: one command, one way to correct, and an external memory that remembers
//! what it was told, fails, or never answers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use steward_guard::{fence, invocation};
use steward_orchestrator_core::Error;
use tokio::sync::Semaphore;

use super::exposure;
use crate::peers::{At, Beside, Expanded, Happened, ProviderCall, ProviderReply, Told};

/// What an external memory does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Answers.
    #[default]
    Well,
    /// Fails at once.
    Dead,
    /// Takes nothing in until it is let go on.
    Slow,
}

/// The services beside the turns of a test.
#[derive(Debug)]
pub(crate) struct FakeBeside {
    /// What a command opens, by slug.
    pub(crate) commands: Mutex<BTreeMap<String, String>>,
    /// What is recalled for every message.
    pub(crate) recalls: Mutex<Vec<String>>,
    pub(crate) mood: Mutex<Mood>,
    told: Mutex<Vec<String>>,
    staged: Mutex<Vec<(u64, String)>>,
    gate: Semaphore,
}

impl Default for FakeBeside {
    fn default() -> Self {
        Self {
            commands: Mutex::default(),
            recalls: Mutex::default(),
            mood: Mutex::default(),
            told: Mutex::default(),
            staged: Mutex::default(),
            gate: Semaphore::new(0),
        }
    }
}

impl FakeBeside {
    /// What the external memory was told, in the order in which it took it in.
    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    /// The messages in which corrections were looked for.
    pub(crate) fn staged(&self) -> Vec<(u64, String)> {
        let mut staged = self.staged.lock().unwrap().clone();
        staged.sort();
        staged
    }

    /// Lets a slow one take everything in.
    pub(crate) fn let_go(&self) {
        self.gate.add_permits(1_000);
    }

    fn mood(&self) -> Mood {
        *self.mood.lock().unwrap()
    }

    async fn take(&self, line: String) -> Result<(), Error> {
        match self.mood() {
            Mood::Well => {}
            Mood::Dead => {
                return Err(Error::Unavailable {
                    dependency: "memory-service",
                    source: "dead".into(),
                });
            }
            Mood::Slow => self.gate.acquire().await.unwrap().forget(),
        }
        self.told.lock().unwrap().push(line);
        Ok(())
    }
}

#[async_trait]
impl Beside for FakeBeside {
    async fn expand(&self, _at: &At, typed: &str) -> Result<Option<Expanded>, Error> {
        let (slug, words) = typed[1..].split_once(' ').unwrap_or((&typed[1..], ""));
        if slug == "twice" {
            return Err(Error::field("user_message.text", "several skills answer to /twice"));
        }
        let text = self.commands.lock().unwrap().get(slug).cloned();
        Ok(text.map(|text| Expanded {
            message: invocation::message(&invocation::Invocation {
                command: slug.to_owned(),
                note: String::new(),
                parts: vec![invocation::Part {
                    name: slug.to_owned(),
                    text,
                }],
                instruction: words.to_owned(),
            }),
            exposures: vec![exposure(slug)],
        }))
    }

    async fn stage_correction(&self, _at: &At, seq: u64, words: &str) -> Result<bool, Error> {
        self.staged.lock().unwrap().push((seq, words.to_owned()));
        Ok(words.contains("from now on"))
    }

    async fn recall(&self, _at: &At, _words: &str) -> Option<String> {
        let recalls = self.recalls.lock().unwrap().clone();
        fence::block(recalls.iter().map(String::as_str)).filter(|_| self.mood() == Mood::Well)
    }

    async fn sync(&self, at: &At, words: &str, answer: &str) -> Result<Told, Error> {
        self.take(format!("{}: {words} -> {answer}", at.turn)).await?;
        Ok(Told::Taken)
    }

    async fn end(&self, at: &At) -> Result<Told, Error> {
        self.take(format!("{}: the end", at.session)).await?;
        Ok(Told::Taken)
    }

    async fn tell(&self, at: &At, happened: Happened, detail: &str) -> Result<(), Error> {
        self.take(format!("{}: {happened:?} {detail}", at.turn)).await
    }

    async fn call(&self, _at: &At, call: ProviderCall<'_>) -> ProviderReply {
        ProviderReply {
            content: format!("{} of {}", call.tool, call.arguments),
            is_error: false,
        }
    }
}
