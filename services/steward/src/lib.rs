//! A whole Steward installation: all services in one process or one service per process, the command line in front of
//! it, and the demo.
//!
//! [`installation`] starts either shape from one [`config::Config`]; [`command`] is the `steward` binary. What the services
//! do stands in their own crates.

pub mod command;
mod component;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod example;
pub mod installation;

pub use component::Component;
