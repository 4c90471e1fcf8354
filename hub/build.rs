//! Has the hub compiled anew when a bundled document comes, goes or changes.

fn main() {
    println!("cargo::rerun-if-changed=../defaults");
}
