//! What the model reads after a change: what happened, once, with nothing to act on (`M-6` holds here too).

use super::{Managed, short};
use crate::error::{Error, StoreFault};
use crate::record::SkillRecord;

pub(super) fn created(record: &SkillRecord) -> String {
    let length = record.description().chars().count();
    format!(
        "created {}, revision {}; its description has {length} characters",
        record.full_name(),
        short(&record.revision)
    )
}

pub(super) fn changed(record: &SkillRecord, note: &str) -> String {
    format!(
        "changed {}, revision {}: {note}",
        record.full_name(),
        short(&record.revision)
    )
}

pub(super) fn removed(record: &SkillRecord, deleted: bool) -> String {
    let verb = if deleted { "deleted" } else { "archived" };
    format!(
        "{verb} {}; it is no longer listed and can be restored from the archive",
        record.full_name()
    )
}

pub(crate) fn proposed(record: &SkillRecord, is_new: bool, proposal: &str) -> String {
    let until = if is_new {
        "it does not exist"
    } else {
        "it stays as it was"
    };
    format!(
        "proposed for {}, not written: {}; a person decides on proposal {}, until then {until}. This is final, go on",
        record.full_name(),
        crate::proposals::staged::CAUSE,
        short(proposal)
    )
}

pub(crate) fn encode(managed: &Managed) -> Result<String, Error> {
    let fault = |error: serde_json::Error| StoreFault::Internal {
        operation: "encode an answer",
        source: error.into(),
    };
    Ok(serde_json::to_string(managed).map_err(fault)?)
}
