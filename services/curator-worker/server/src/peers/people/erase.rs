//! Erasing everything. First what others share is looked through for what rests on the person, while it can still be told;
//! then each service lets go of its part; what cannot go now is named and counted as found.

use std::collections::BTreeSet;

use steward_base::ErrorKind;
use steward_client::{ClientError, SkillClient};
use steward_curator_core::Error;
use steward_curator_core::review::review_name;
use steward_proto::memory::v1 as memory;
use steward_proto::memory::v1::ProviderErasure;
use steward_proto::memory::v1::derived_entry::Support;
use steward_proto::recall::v1 as recall;
use steward_proto::skill::v1 as skill;

use super::{PAGE, People, Whose};
use crate::peers::{MEMORY, RECALL, SKILLS, by};

/// Something that rests on the person, or is left of what they had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Derived {
    pub(crate) name: String,
    pub(crate) revision: String,
    pub(crate) cause: &'static str,
    pub(crate) erased: bool,
}

/// What became of it all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) sessions: u64,
    pub(crate) reviews: u64,
    pub(crate) entries: u64,
    pub(crate) revisions: u64,
    pub(crate) skills: u64,
    pub(crate) found_after: u64,
    pub(crate) derived: Vec<Derived>,
}

impl Receipt {
    fn left(&mut self, name: String, cause: &'static str) {
        self.found_after += 1;
        self.derived.push(Derived {
            name,
            revision: String::new(),
            cause,
            erased: false,
        });
    }

    /// What the team's external memory made of it.
    fn told(&mut self, whose: &Whose, became: ProviderErasure) {
        let name = format!("{}/externalMemory", whose.user_name());
        match became {
            ProviderErasure::None => {}
            ProviderErasure::Erased => self.derived.push(Derived {
                name,
                revision: String::new(),
                cause: "what the external memory had of the person",
                erased: true,
            }),
            ProviderErasure::Unsupported => self.left(
                name,
                "the external memory cannot erase a person; whoever runs it has to",
            ),
            ProviderErasure::Failed | ProviderErasure::Unspecified => {
                self.left(name, "the external memory could not be made to erase; ask again");
            }
        }
    }
}

impl People {
    /// Erases all that is held on the person. Made again, it goes on with what is left.
    pub(crate) async fn erase(&self, whose: &Whose, shared: bool) -> Result<Receipt, Error> {
        let mut receipt = Receipt::default();
        let (memory, skills, _) = self.as_caller(whose);
        let sessions = self.session_names(whose).await?;
        self.name_revisions(&skills, whose, &sessions, &mut receipt).await?;
        self.erase_library(whose, &mut receipt).await?;
        self.erase_reviews(whose, &mut receipt).await?;
        self.erase_sessions(sessions, &mut receipt).await?;
        let request = memory::EraseUserMemoryRequest {
            user: whose.user_name(),
            shared,
        };
        let erased = memory.erase_user_memory(request).await.map_err(by(MEMORY))?;
        receipt.entries = erased.entries;
        receipt.revisions = erased.revisions;
        receipt.found_after += erased.found_after;
        receipt.told(whose, erased.provider());
        receipt
            .derived
            .extend(erased.derived_entries.into_iter().map(derived_entry));
        tracing::info!(team = %whose.team, sessions = receipt.sessions, reviews = receipt.reviews, found_after = receipt.found_after, "a person was erased");
        Ok(receipt)
    }

    async fn session_names(&self, whose: &Whose) -> Result<BTreeSet<String>, Error> {
        let (mut names, mut page_token) = (BTreeSet::new(), String::new());
        loop {
            let page = self.sessions_of(whose, page_token).await?;
            names.extend(page.sessions.into_iter().map(|session| session.name));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(names);
            }
        }
    }

    async fn erase_sessions(&self, sessions: BTreeSet<String>, receipt: &mut Receipt) -> Result<(), Error> {
        for name in sessions {
            let request = recall::DeleteSessionRequest {
                name: name.clone(),
                etag: String::new(),
            };
            match self.sessions.delete_session(request).await {
                Ok(_) => receipt.sessions += 1,
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) if is_refusal(&error) => receipt.left(name, "a turn of the session runs or waits"),
                Err(error) => return Err(Error::peer(RECALL, error)),
            }
        }
        Ok(())
    }

    /// The person's reviews with their journals; those that run are asked to stop and are left.
    async fn erase_reviews(&self, whose: &Whose, receipt: &mut Receipt) -> Result<(), Error> {
        let (erased, running) = self.ledger.erase_reviews(&whose.team, &whose.user).await?;
        receipt.reviews = erased;
        for id in running {
            receipt.left(review_name(&whose.team, &id), "the review runs and was asked to stop");
        }
        Ok(())
    }

    /// Names the revisions of shared skills that rest on the person. The caller sees no library but those and their own.
    async fn name_revisions(
        &self,
        client: &SkillClient,
        whose: &Whose,
        sessions: &BTreeSet<String>,
        receipt: &mut Receipt,
    ) -> Result<(), Error> {
        for found in self.skills_of(client, whose).await? {
            if !Self::is_own(whose, &found) {
                let resting = resting_on(client, whose, sessions, &found).await?;
                receipt.derived.extend(resting);
            }
        }
        Ok(())
    }

    /// The person's own library, destroyed unread.
    async fn erase_library(&self, whose: &Whose, receipt: &mut Receipt) -> Result<(), Error> {
        let client = self.libraries.clone().with_credentials(whose.credentials.clone());
        let request = skill::ErasePersonLibraryRequest {
            user: whose.user_name(),
        };
        let erased = client.erase_person_library(request).await.map_err(by(SKILLS))?;
        receipt.skills = erased.skills;
        receipt.found_after += erased.found_after;
        Ok(())
    }
}

/// The revisions of a shared skill that the person wrote or that rest on their conversations.
async fn resting_on(
    client: &SkillClient,
    whose: &Whose,
    sessions: &BTreeSet<String>,
    found: &skill::Skill,
) -> Result<Vec<Derived>, Error> {
    let (mut derived, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = skill::ListRevisionsRequest {
            parent: found.name.clone(),
            page_size: PAGE,
            page_token,
        };
        let page = match client.list_revisions(request).await {
            Ok(page) => page,
            // One that has no history here, such as a skill of an external folder.
            Err(error) if is_refusal(&error) || error.kind == ErrorKind::NotFound => return Ok(derived),
            Err(error) => return Err(Error::peer(SKILLS, error)),
        };
        for revision in page.revisions {
            let cited = revision.evidence.as_ref().map(|evidence| evidence.session.as_str());
            let cause = if revision.author == whose.user_name() {
                "written on behalf of the person"
            } else if sessions.contains(&revision.session) || cited.is_some_and(|cited| sessions.contains(cited)) {
                "rests on a conversation of the person"
            } else {
                continue;
            };
            derived.push(Derived {
                name: found.name.clone(),
                revision: revision.revision,
                cause,
                erased: false,
            });
        }
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(derived);
        }
    }
}

fn derived_entry(entry: memory::DerivedEntry) -> Derived {
    let cause = match entry.support() {
        Support::Sole => "rests on the person's words alone",
        Support::Mixed => "rests on the person's words and others'",
        Support::Independent => "typed by the person for others to read",
        Support::Unspecified => "rests on the person",
    };
    Derived {
        revision: entry.revision.to_string(),
        name: entry.entry,
        cause,
        erased: entry.erased,
    }
}

/// Whether the service decided against it; anything else is not known, and the call is to be made again.
fn is_refusal(error: &ClientError) -> bool {
    matches!(
        error.kind,
        ErrorKind::Conflict | ErrorKind::Precondition | ErrorKind::Forbidden | ErrorKind::InvalidInput
    )
}
