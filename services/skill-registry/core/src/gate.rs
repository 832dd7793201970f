//! The write gates: one pure table over the proven origin of a write, the skill's provenance and the action (`S-14`).
//!
//! Nothing else in the registry decides whether a write may happen because of whose skill it is. The table is total:
//! every origin, state and action has a ruling, and what cannot be read is refused (`S-15`).

use serde::{Deserialize, Serialize};
use steward_base::{Integrity, Origin};

/// Who made a skill, which decides who may change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// A review or a curation created it; nothing else makes a skill agent-created (`S-15`).
    AgentCreated,
    /// A person created it, alone or through a turn.
    UserMade,
    /// The hub installed it.
    Hub,
    /// Shipped with Steward.
    Builtin,
    /// Lies in a read-only folder outside the registry.
    External,
    /// A person brought it in from files.
    Imported,
}

impl Provenance {
    /// All of them, for walking the table.
    pub const ALL: [Self; 6] = [
        Self::AgentCreated,
        Self::UserMade,
        Self::Hub,
        Self::Builtin,
        Self::External,
        Self::Imported,
    ];

    /// The name in stores and texts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentCreated => "agent_created",
            Self::UserMade => "user_made",
            Self::Hub => "hub",
            Self::Builtin => "builtin",
            Self::External => "external",
            Self::Imported => "imported",
        }
    }

    /// From its name; anything else is a record that cannot be read.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provenance| provenance.as_str() == name)
    }

    /// What a skill becomes when a write of this origin creates it (`S-15`).
    pub const fn of_creation(origin: Origin) -> Self {
        match origin {
            Origin::Review | Origin::Curation => Self::AgentCreated,
            Origin::Hub => Self::Hub,
            Origin::Builtin => Self::Builtin,
            Origin::Import => Self::Imported,
            Origin::Foreground | Origin::Schedule | Origin::Delegate => Self::UserMade,
        }
    }
}

/// What is to be done to an existing skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Replace the whole `SKILL.md`.
    Edit,
    /// Replace a text in `SKILL.md` or a supporting file.
    Patch,
    /// Write a supporting file.
    WriteFile,
    /// Remove a supporting file.
    RemoveFile,
    /// Make an older revision the newest one again.
    RestoreRevision,
    /// Take the skill out of use.
    Delete,
    /// Set the skill aside; it can be restored.
    Archive,
    /// Bring an archived skill back.
    Restore,
    /// Protect it from deletion and from automatic processes.
    Pin,
    /// Lift that protection.
    Unpin,
    /// Destroy it with all its revisions.
    Purge,
}

impl Action {
    /// All of them, for walking the table.
    pub const ALL: [Self; 11] = [
        Self::Edit,
        Self::Patch,
        Self::WriteFile,
        Self::RemoveFile,
        Self::RestoreRevision,
        Self::Delete,
        Self::Archive,
        Self::Restore,
        Self::Pin,
        Self::Unpin,
        Self::Purge,
    ];

    /// The name in revisions and texts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Patch => "patch",
            Self::WriteFile => "write_file",
            Self::RemoveFile => "remove_file",
            Self::RestoreRevision => "restore_revision",
            Self::Delete => "delete",
            Self::Archive => "archive",
            Self::Restore => "restore",
            Self::Pin => "pin",
            Self::Unpin => "unpin",
            Self::Purge => "purge",
        }
    }

    /// Whether the skill is no longer in use afterwards.
    const fn removes(self) -> bool {
        matches!(self, Self::Delete | Self::Archive | Self::Purge)
    }
}

/// What the table looks at in a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a column of the table and independent of the others"
)]
pub struct GateState {
    /// Who made it; `None` when the record cannot be read.
    pub provenance: Option<Provenance>,
    /// Whether a person pinned it.
    pub pinned: bool,
    /// Whether it belongs to Steward's own workings and stays (`C-3`).
    pub protected: bool,
    /// Whether a schedule names it (`C-2`).
    pub referenced: bool,
    /// Whether the installation lets curations set builtins aside (`prune_builtins`, `C-3`).
    pub prunable: bool,
}

/// A gate that refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// The origin record cannot be read.
    Unreadable,
    /// An automatic write to a pinned skill.
    Pinned,
    /// A deletion of a pinned skill by a person.
    PinnedDelete,
    /// A person made the skill.
    UserMade,
    /// Steward ships the skill.
    Builtin,
    /// The hub installed the skill.
    Hub,
    /// The skill lies in a read-only folder.
    External,
    /// A removal of a skill that Steward needs.
    Protected,
    /// Only a person does this.
    PersonOnly,
    /// An automatic write to the team's library of what is not its own.
    TeamLibrary,
    /// A curation's deletion without a word on where the content went.
    AbsorbedInto,
    /// An automatic removal of a skill that a schedule names.
    Referenced,
    /// The team's secrets for a skill that nobody but its owner let in (`S-8`).
    OwnSkill,
    /// The hub took it out of sight, since its tree is revoked.
    Revoked,
}

impl Gate {
    /// The name in error metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Pinned => "pinned",
            Self::PinnedDelete => "pinned_delete",
            Self::UserMade => "user_made",
            Self::Builtin => "builtin",
            Self::Hub => "hub",
            Self::External => "external",
            Self::Protected => "protected",
            Self::PersonOnly => "person_only",
            Self::TeamLibrary => "team_library",
            Self::AbsorbedInto => "absorbed_into",
            Self::Referenced => "referenced",
            Self::OwnSkill => "own_skill",
            Self::Revoked => "revoked",
        }
    }

    /// What the refused caller can do instead.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Unreadable => {
                "its origin record cannot be read, so nothing may change it; ask an operator to check the store"
            }
            Self::Pinned => "a person pinned it; leave it as it is, or propose the change to that person",
            Self::PinnedDelete => "it is pinned; unpin it first if it really has to go",
            Self::UserMade => {
                "a person made it; leave it as it is, and put the lesson into an agent-made skill or propose it"
            }
            Self::Builtin => "it is shipped with Steward; leave it as it is, or make a skill of your own beside it",
            Self::Hub => "the hub installed it; change it at its source, or uninstall it through the hub",
            Self::External => "it lies in a read-only folder; copy it into a skill of your own and change that",
            Self::Protected => "Steward needs it; it can not be removed",
            Self::PersonOnly => "only a person may do this; propose it",
            Self::TeamLibrary => "the team's library is changed by its maintainers; propose it",
            Self::AbsorbedInto => {
                "a curation says with absorbed_into which existing skill now holds the content, or gives the empty text for a plain removal"
            }
            Self::Referenced => "a schedule names it; leave it in use until that schedule names another",
            Self::OwnSkill => {
                "the team's secrets are for skills that a maintainer let in; propose it to the team, or set the variable yourself"
            }
            Self::Revoked => "its tree is revoked; a maintainer can reinstate it through the hub, or update the skill",
        }
    }
}

/// What the table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// Do it.
    Allow,
    /// Set the skill aside instead of deleting it (`S-16`).
    AsArchive,
    /// Do nothing.
    Refuse(Gate),
}

/// The table.
pub const fn rule(origin: Origin, state: GateState, action: Action) -> Ruling {
    let Some(provenance) = state.provenance else {
        return Ruling::Refuse(Gate::Unreadable);
    };
    match origin {
        Origin::Foreground | Origin::Import => person(provenance, state, action),
        Origin::Curation if matches!(provenance, Provenance::Builtin) && state.prunable => pruning(state, action),
        Origin::Review | Origin::Curation | Origin::Schedule | Origin::Delegate => automatic(provenance, state, action),
        Origin::Hub => installer(Provenance::Hub, provenance, state, action),
        Origin::Builtin => installer(Provenance::Builtin, provenance, state, action),
    }
}

const fn person(provenance: Provenance, state: GateState, action: Action) -> Ruling {
    match (provenance, action) {
        (Provenance::External, _) => Ruling::Refuse(Gate::External),
        (_, Action::Delete | Action::Archive | Action::Purge) if state.pinned => Ruling::Refuse(Gate::PinnedDelete),
        (_, Action::Delete | Action::Archive | Action::Purge) if state.protected => Ruling::Refuse(Gate::Protected),
        // Everyone has the same builtins: a team may set one aside, but not change what it says.
        (
            Provenance::Builtin,
            Action::Edit
            | Action::Patch
            | Action::WriteFile
            | Action::RemoveFile
            | Action::RestoreRevision
            | Action::Purge,
        ) => Ruling::Refuse(Gate::Builtin),
        // The hub's lock and audit must know of a removal, so it is the hub that removes.
        (Provenance::Hub, Action::Delete | Action::Purge) => Ruling::Refuse(Gate::Hub),
        _ => Ruling::Allow,
    }
}

const fn automatic(provenance: Provenance, state: GateState, action: Action) -> Ruling {
    let refused = match provenance {
        Provenance::UserMade | Provenance::Imported => Some(Gate::UserMade),
        Provenance::Hub => Some(Gate::Hub),
        Provenance::Builtin => Some(Gate::Builtin),
        Provenance::External => Some(Gate::External),
        Provenance::AgentCreated if state.pinned => Some(Gate::Pinned),
        Provenance::AgentCreated => None,
    };
    match (refused, action) {
        (Some(gate), _) => Ruling::Refuse(gate),
        (None, Action::Pin | Action::Unpin | Action::Purge) => Ruling::Refuse(Gate::PersonOnly),
        (None, Action::Delete | Action::Archive) if state.referenced => Ruling::Refuse(Gate::Referenced),
        (None, Action::Delete) => Ruling::AsArchive,
        (None, _) => Ruling::Allow,
    }
}

/// A curation ages builtins where that is switched on, sets them aside and brings them back, and does nothing else to
/// them.
const fn pruning(state: GateState, action: Action) -> Ruling {
    match action {
        _ if state.pinned => Ruling::Refuse(Gate::Pinned),
        _ if action.removes() && state.protected => Ruling::Refuse(Gate::Protected),
        Action::Archive | Action::Delete if state.referenced => Ruling::Refuse(Gate::Referenced),
        Action::Archive | Action::Restore => Ruling::Allow,
        Action::Delete => Ruling::AsArchive,
        _ => Ruling::Refuse(Gate::Builtin),
    }
}

/// The hub and the seeding of builtins touch their own kind only, and never undo a person's pin.
const fn installer(own: Provenance, provenance: Provenance, state: GateState, action: Action) -> Ruling {
    let gate = match provenance {
        Provenance::AgentCreated => Gate::PersonOnly,
        Provenance::UserMade | Provenance::Imported => Gate::UserMade,
        Provenance::Hub => Gate::Hub,
        Provenance::Builtin => Gate::Builtin,
        Provenance::External => Gate::External,
    };
    if own as u8 != provenance as u8 {
        return Ruling::Refuse(gate);
    }
    match action {
        Action::Pin | Action::Unpin | Action::Purge => Ruling::Refuse(Gate::PersonOnly),
        _ if state.pinned => Ruling::Refuse(Gate::Pinned),
        _ if action.removes() && state.protected => Ruling::Refuse(Gate::Protected),
        Action::Delete => Ruling::AsArchive,
        _ => Ruling::Allow,
    }
}

/// What a deletion says about where the content went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absorption {
    /// Nothing was said.
    NotGiven,
    /// A plain removal.
    Pruned,
    /// Into a skill that exists and is in use.
    Into,
    /// Into something that does not exist, or into itself.
    IntoNothing,
}

/// Whether a deletion or archiving of this origin may go on with what it says (`S-14`).
pub const fn absorption(origin: Origin, said: Absorption) -> Result<(), Gate> {
    match (origin, said) {
        (Origin::Curation, Absorption::NotGiven) | (_, Absorption::IntoNothing) => Err(Gate::AbsorbedInto),
        _ => Ok(()),
    }
}

/// What a write cites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cited {
    /// Nothing, or spans of a session that the credential is not bound to.
    Nothing,
    /// Spans, the least trustworthy of which is this; `None` when nobody knows.
    Spans(Option<Integrity>),
}

/// What becomes of a write that every gate lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Footing {
    /// It takes effect.
    Stands,
    /// It becomes a proposal, which a person decides on.
    Waits,
    /// It is refused: it must cite what it rests on.
    Uncited,
}

/// On what a write stands (`L-6`), by the proven origin and by what it cites. Who is present decides for themselves; what
/// an automatic writer drew from outsiders' words, or from nobody knows what, waits for a person. A review always cites;
/// the others may have nothing to cite.
pub const fn footing(origin: Origin, cited: Cited) -> Footing {
    match (origin, cited) {
        (Origin::Review, Cited::Nothing) => Footing::Uncited,
        (Origin::Foreground | Origin::Import | Origin::Hub | Origin::Builtin, _)
        | (Origin::Curation | Origin::Schedule | Origin::Delegate, Cited::Nothing)
        | (_, Cited::Spans(Some(Integrity::Workspace | Integrity::Person | Integrity::Operator))) => Footing::Stands,
        (_, Cited::Spans(None | Some(Integrity::UnknownTool | Integrity::External))) => Footing::Waits,
    }
}

#[cfg(test)]
mod tests;
