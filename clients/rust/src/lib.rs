//! The typed client of Steward, for services, the command line and everyone else.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use steward_client::{Client, Credentials, Wire};
//!
//! let wire = Wire::connect("http://127.0.0.1:7400")?.with_credentials(Credentials::token("…the token…")?);
//! let me = Client::new(wire).access.who_am_i(Default::default()).await?;
//! println!("{}", me.user);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Wire`] reaches a server over the network or in the same process; everything above it is the same. There is one
//! facade per service of the contract; each method takes a request message and gives the response message or a
//! [`ClientError`]. Retries live here and nowhere else.
#![warn(missing_docs)]

pub mod ambient;
mod credentials;
mod error;
mod facade;
mod wire;

pub use credentials::{Credentials, TokenSyntax};
pub use error::{BoxError, ClientError, ErrorDetails, ErrorOrigin};
pub use facade::{
    AccessClient, AgentClient, AuditClient, BundleClient, Client, CommandClient, CuratorClient, DEFAULT_TIMEOUT,
    ExchangeClient, HubClient, LibraryClient, MAX_MESSAGE_BYTES, MemoryClient, ModelClient, PersonClient,
    ProviderClient, RecallClient, ResponseStream, ReviewClient, RevocationClient, SecretClient, SessionClient,
    SessionStoreClient, SkillClient, SkillProposalClient,
};
pub use wire::{RetryPolicy, Wire, WireRequest, WireResponse, check_endpoint, parse_timeout, render_timeout};
