//! What the tests of this crate share, and the contract of its errors.

mod errors;
pub(crate) mod rig;
