//! The one way out (`H-8`): every fetch from the internet that Steward makes on its own goes through [`Guarded`].
//!
//! * https only, unless an origin is permitted by name.
//! * Names are resolved by us, every address is checked, and the connection goes to a checked address and no other, so
//!   that a name cannot mean one thing when it is checked and another when it is used.
//! * Redirects are followed by hand, few of them, each checked like the first; a token goes to its own host only.
//! * An answer is read up to a size and within a time; hosts are asked at a bounded rate, and a host that asks for
//!   patience gets it ([`retry_after`]).
//! * [`Cached`] remembers answers by their ETag and asks whether they still hold.
//!
//! It knows nothing of skills; what is fetched is untrusted bytes.
#![warn(missing_docs)]

pub mod address;
mod cache;
mod error;
mod guarded;
mod rate;
mod request;
pub mod retry_after;

pub use cache::Cached;
pub use error::FetchError;
pub use guarded::{Guarded, Resolve, Settings, SystemResolver, Token};
pub use request::{Answer, Fetch, Request};
