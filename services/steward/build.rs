//! Tells the linker of an optimised build to keep functions with the same instructions once: generic code makes many of them.

#[expect(clippy::disallowed_methods, reason = "a build script is told by the environment")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    // Where Rust links with LLD unless told otherwise; other linkers do not know the option.
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
