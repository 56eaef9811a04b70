//! How the program is linked. Every command runs under a process of this program, and a
//! position-independent one spends most of that process's start on writing
//! some 90,000 addresses into its tables, 2 MB that no two processes share then.
//! Linked for a fixed place, as most Go programs are, it starts in a third of
//! the time. Stack, heap and libraries are still placed at random.

#[allow(
    clippy::disallowed_methods,
    reason = "cargo tells a build script about its target in no other way"
)]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
