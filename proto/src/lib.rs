//! The wire contract of Steward: generated messages, clients and servers, one module per protobuf package, and a table
//! of all RPCs with the policies that their `.proto` files declare.
//!
//! Nothing here is written by hand but these modules. Conversions to domain types live with each server.
#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    missing_debug_implementations,
    unreachable_pub,
    reason = "generated code keeps the generator's style"
)]

/// Descriptors of all packages with comments, imports included: for reflection and for tests.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("gen/descriptors.bin");

pub mod methods;

macro_rules! packages {
    ($($package:ident),*) => {
        $(
            #[doc = concat!("Package `steward.", stringify!($package), ".v1`.")]
            pub mod $package {
                #[doc = concat!("Version 1 of `steward.", stringify!($package), "`.")]
                pub mod v1 {
                    include!(concat!("gen/steward.", stringify!($package), ".v1.rs"));
                }
            }
        )*
    };
}

packages!(access, agent, common, hub, learning, recall, skill);

/// Packages `steward.memory.v1` and `steward.memory.provider.v1`.
pub mod memory {
    /// Version 1 of `steward.memory`.
    pub mod v1 {
        include!("gen/steward.memory.v1.rs");
    }

    /// What an external memory implements.
    pub mod provider {
        /// Version 1 of `steward.memory.provider`.
        pub mod v1 {
            include!("gen/steward.memory.provider.v1.rs");
        }
    }
}
