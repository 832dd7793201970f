//! Every RPC that a person may call is reachable from the command line: a table of the contract's methods against the
//! verbs of the parser. A new RPC fails here until it has a verb, or a reason why a person needs none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use clap::{Command, Subcommand as _};
use steward_proto::methods::METHODS;

/// Methods by the verb that calls them.
const VERBS: &[(&str, &str)] = &[
    ("access.v1.AccessService/WhoAmI", "access whoami"),
    ("access.v1.AccessService/CreateTeam", "access create-team"),
    ("access.v1.AccessService/ListTeams", "access teams"),
    ("access.v1.AccessService/CreateUser", "access create-user"),
    ("access.v1.AccessService/ListUsers", "access users"),
    ("access.v1.AccessService/UpdateUser", "access update-user"),
    ("access.v1.AccessService/CreateToken", "access create-token"),
    ("access.v1.AccessService/ListTokens", "access tokens"),
    ("access.v1.AccessService/RevokeToken", "access revoke-token"),
    ("access.v1.AuditService/ListAuditEvents", "audit list"),
    ("agent.v1.AgentService/RunTurn", "chat"),
    ("agent.v1.AgentService/WatchTurn", "sessions watch"),
    ("agent.v1.AgentService/InterruptTurn", "sessions stop"),
    ("agent.v1.AgentService/ListPendingActions", "sessions pending"),
    ("agent.v1.ModelService/GetModelRoute", "models list"),
    ("agent.v1.SessionService/CreateSession", "chat"),
    ("agent.v1.SessionService/GetSession", "sessions show"),
    ("agent.v1.SessionService/UpdateSession", "sessions update"),
    ("agent.v1.SessionService/DeleteSession", "sessions delete"),
    ("agent.v1.SessionService/RewindSession", "sessions rewind"),
    ("agent.v1.SessionService/ForkSession", "sessions fork"),
    ("agent.v1.SessionService/ListSessions", "sessions list"),
    ("agent.v1.SessionService/ListSessionMessages", "sessions messages"),
    ("hub.v1.HubService/SearchHub", "hub search"),
    ("hub.v1.HubService/FetchHubItem", "hub inspect"),
    ("hub.v1.HubService/GetHubItem", "hub item"),
    ("hub.v1.HubService/ListHubItems", "hub items"),
    ("hub.v1.HubService/ReleaseHubItem", "hub approve"),
    ("hub.v1.HubService/RejectHubItem", "hub reject"),
    ("hub.v1.HubService/AcceptHubFinding", "hub accept"),
    ("hub.v1.HubService/ExportHubFindings", "hub sarif"),
    ("hub.v1.HubService/InstallHubItem", "hub install"),
    ("hub.v1.HubService/GetHubSkill", "hub show"),
    ("hub.v1.HubService/ListHubSkills", "hub list"),
    ("hub.v1.HubService/VerifyHubSkill", "hub verify"),
    ("hub.v1.HubService/UninstallHubSkill", "hub uninstall"),
    ("hub.v1.HubService/PlanHubUpdate", "hub plan"),
    ("hub.v1.HubService/FetchHubUpdate", "hub update"),
    ("hub.v1.HubService/RescanHubSkills", "hub rescan"),
    ("hub.v1.HubService/WithdrawHubTree", "hub revoke"),
    ("hub.v1.HubService/ReinstateHubTree", "hub reinstate"),
    ("hub.v1.HubService/ListHubWithdrawals", "hub withdrawn"),
    ("hub.v1.HubService/CheckHubSkills", "hub check"),
    ("hub.v1.HubService/PublishHubSkill", "hub publish"),
    ("hub.v1.HubService/UnpublishHubSkill", "hub unpublish"),
    ("hub.v1.HubService/ListHubPublications", "hub published"),
    ("hub.v1.HubService/ListHubAuditEntries", "hub audit"),
    ("hub.v1.HubService/CheckHubAuditEntry", "hub prove"),
    ("learning.v1.CuratorService/RunCuration", "curator run"),
    ("learning.v1.CuratorService/GetCurationStatus", "curator status"),
    ("learning.v1.CuratorService/PauseCuration", "curator pause"),
    ("learning.v1.CuratorService/ResumeCuration", "curator resume"),
    ("learning.v1.CuratorService/ListCurationRuns", "curator history"),
    ("learning.v1.CuratorService/GetCurationReport", "curator report"),
    ("learning.v1.CuratorService/RollbackCurationRun", "curator rollback"),
    ("learning.v1.PersonService/ExportPerson", "people export"),
    ("learning.v1.PersonService/ErasePerson", "people erase"),
    ("learning.v1.ReviewService/ListReviews", "reviews list"),
    ("learning.v1.ReviewService/GetReview", "reviews show"),
    ("learning.v1.ReviewService/WatchReviews", "reviews watch"),
    ("learning.v1.ReviewService/RetryReview", "reviews retry"),
    ("learning.v1.ReviewService/CancelReview", "reviews cancel"),
    ("memory.v1.MemoryService/Apply", "memory add"),
    ("memory.v1.MemoryService/ListEntries", "memory list"),
    ("memory.v1.MemoryService/GetEntry", "memory show"),
    ("memory.v1.MemoryService/ListEntryRevisions", "memory history"),
    ("memory.v1.MemoryService/DiffRevisions", "memory diff"),
    ("memory.v1.MemoryService/RevertEntry", "memory revert"),
    ("memory.v1.MemoryService/GetSnapshot", "memory snapshot"),
    ("memory.v1.MemoryService/ListProposals", "memory inbox list"),
    ("memory.v1.MemoryService/GetProposal", "memory inbox show"),
    ("memory.v1.MemoryService/ApproveProposal", "memory inbox approve"),
    ("memory.v1.MemoryService/RejectProposal", "memory inbox reject"),
    ("memory.v1.MemoryService/GetInbox", "memory inbox watch"),
    ("memory.v1.MemoryService/WatchInbox", "memory inbox watch"),
    ("memory.v1.MemoryService/ConfirmEntry", "memory confirm"),
    ("memory.v1.MemoryService/ReportChecks", "memory check"),
    ("memory.v1.MemoryService/ExportEntries", "memory export"),
    ("memory.v1.MemoryService/ImportEntries", "memory import"),
    ("memory.v1.MemoryService/ListHeldEntries", "memory held list"),
    ("memory.v1.MemoryService/DeleteHeldEntry", "memory held delete"),
    ("memory.v1.MemoryService/ExportUserMemory", "memory export"),
    ("memory.v1.MemoryService/EraseUserMemory", "memory erase"),
    ("recall.v1.RecallService/Search", "recall search"),
    ("recall.v1.RecallService/ExportSessions", "sessions export"),
    ("recall.v1.RecallService/ImportSessions", "sessions import"),
    ("recall.v1.SessionStoreService/BackupTeam", "recall backup"),
    ("recall.v1.SessionStoreService/ListBackups", "recall backups"),
    ("recall.v1.SessionStoreService/RestoreTeam", "recall restore"),
    ("recall.v1.SessionStoreService/CheckIntegrity", "recall check"),
    ("skill.v1.BundleService/GetBundle", "skills bundles show"),
    ("skill.v1.BundleService/ListBundles", "skills bundles list"),
    ("skill.v1.BundleService/SaveBundle", "skills bundles save"),
    ("skill.v1.BundleService/DeleteBundle", "skills bundles delete"),
    ("skill.v1.CommandService/ListCommands", "skills commands"),
    ("skill.v1.CommandService/ExpandCommand", "skills expand"),
    ("skill.v1.ExchangeService/CheckSkill", "skills check"),
    ("skill.v1.ExchangeService/ImportSkill", "skills import"),
    ("skill.v1.ExchangeService/ExportSkill", "skills export"),
    ("skill.v1.LibraryService/ErasePersonLibrary", "people erase"),
    ("skill.v1.LibraryService/ListSnapshots", "skills snapshots"),
    ("skill.v1.LibraryService/RestoreSnapshot", "skills restore-snapshot"),
    ("skill.v1.ProposalService/ProposeSkill", "skills propose"),
    ("skill.v1.ProposalService/GetProposal", "skills inbox show"),
    ("skill.v1.ProposalService/ListProposals", "skills inbox list"),
    ("skill.v1.ProposalService/ApproveProposal", "skills inbox approve"),
    ("skill.v1.ProposalService/RejectProposal", "skills inbox reject"),
    ("skill.v1.ProposalService/GetInbox", "skills inbox watch"),
    ("skill.v1.ProposalService/WatchInbox", "skills inbox watch"),
    ("skill.v1.SecretService/SetSecret", "secrets set"),
    ("skill.v1.SecretService/ListSecrets", "secrets list"),
    ("skill.v1.SecretService/DeleteSecret", "secrets delete"),
    ("skill.v1.SecretService/DeliverSecrets", "secrets run"),
    ("skill.v1.SkillService/GetSkill", "skills show"),
    ("skill.v1.SkillService/ListSkills", "skills list"),
    ("skill.v1.SkillService/ViewSkill", "skills view"),
    ("skill.v1.SkillService/ManageSkill", "skills create"),
    ("skill.v1.SkillService/ArchiveSkill", "skills archive"),
    ("skill.v1.SkillService/RestoreSkill", "skills restore"),
    ("skill.v1.SkillService/PurgeSkill", "skills purge"),
    ("skill.v1.SkillService/PinSkill", "skills pin"),
    ("skill.v1.SkillService/HideSkill", "skills hide"),
    ("skill.v1.SkillService/GetIndex", "skills index"),
    ("skill.v1.SkillService/ListRevisions", "skills history"),
    ("skill.v1.SkillService/BlameFile", "skills blame"),
    ("skill.v1.SkillService/DiffRevisions", "skills diff"),
    ("skill.v1.SkillService/RestoreRevision", "skills restore-revision"),
];

/// Methods that belong to a turn: a person reaches them by talking, and would get nothing of their own by calling them.
const IN_A_TURN: &[(&str, &str)] = &[
    (
        "memory.v1.MemoryService/StageCorrection",
        "each message is looked at when it is said",
    ),
    (
        "memory.v1.ProviderService/OpenProviderSession",
        "sessions are opened with it",
    ),
    ("memory.v1.ProviderService/RecallFromProvider", "goes with a message"),
    ("memory.v1.ProviderService/SyncTurnToProvider", "follows a turn"),
    (
        "memory.v1.ProviderService/CallProviderTool",
        "the model calls its tools",
    ),
    (
        "memory.v1.ProviderService/TellProvider",
        "tells of what happens in a session",
    ),
    ("skill.v1.CommandService/PreloadSkills", "sessions are opened with it"),
];

fn verbs() -> BTreeSet<String> {
    fn collect(command: &Command, words: &str, found: &mut BTreeSet<String>) {
        if !words.is_empty() && !command.has_subcommands() {
            found.insert(words.to_owned());
        }
        for inner in command.get_subcommands() {
            let words = format!("{words} {}", inner.get_name());
            collect(inner, words.trim_start(), found);
        }
    }
    let mut found = BTreeSet::new();
    let command = steward_cli::Verb::augment_subcommands(Command::new("steward"));
    collect(&command, "", &mut found);
    found
}

#[test]
fn every_rpc_that_a_person_may_call_has_a_verb_or_a_reason() {
    let known: BTreeSet<&str> = VERBS.iter().chain(IN_A_TURN).map(|(method, _)| *method).collect();
    let missing: Vec<_> = METHODS
        .iter()
        .filter(|method| method.min_role > 0)
        .filter_map(|method| method.path.strip_prefix("/steward."))
        .filter(|method| !known.contains(method))
        .collect();
    assert!(missing.is_empty(), "no verb calls {missing:#?}");
}

#[test]
fn the_table_names_methods_and_verbs_that_there_are() {
    let verbs = verbs();
    let methods: BTreeSet<_> = METHODS
        .iter()
        .filter_map(|method| method.path.strip_prefix("/steward."))
        .collect();
    for (method, _) in VERBS.iter().chain(IN_A_TURN) {
        assert!(methods.contains(method), "the contract has no {method}");
    }
    for (method, verb) in VERBS {
        assert!(
            verbs.contains(*verb),
            "`steward {verb}`, which calls {method}, is no verb"
        );
    }
}

/// Help is the first thing that a person reads of a verb.
#[test]
fn every_verb_and_every_argument_says_what_it_is() {
    fn check(command: &Command, words: &str) {
        for inner in command.get_subcommands() {
            let words = format!("{words} {}", inner.get_name());
            let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty(), "`{words}` does not say what it does");
            assert!(
                !about.ends_with('.'),
                "`{words}` ends its line with a full stop: {about}"
            );
            for argument in inner.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.is_empty(), "`{words}` does not say what {} is", argument.get_id());
            }
            check(inner, &words);
        }
    }
    check(
        &steward_cli::Verb::augment_subcommands(Command::new("steward")),
        "steward",
    );
}
