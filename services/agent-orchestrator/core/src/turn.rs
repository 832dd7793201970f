//! The rules of a turn that need no model and no clock of their own: what a request may hold, what becomes of open calls,
//! and what the stored messages tell of a turn whose process is gone.

mod close;
mod event;
mod input;
mod replay;
mod results;

pub use close::{Closing, closing_results, turn_start, unanswered};
pub use event::{Completed, Event, PendingCall, PrefixReport, SecretRequest, SecretVariable};
pub use input::{Attachment, Beside, ClientResult, UserMessage, check_request_id, own_words, title_of};
pub use replay::{Replayed, replay};
pub use results::{answered_by, client_results};
