//! Turns from the client's side, through the real edge: what is streamed, what is stored, and what is left when clients
//! or processes go.

mod attach;
mod beside;
mod client_tools;
mod conversation;
mod faults;
mod kept;
mod lost;
mod owed;
mod stopped;
