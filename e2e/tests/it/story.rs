//! What `make demo` tells is true: the program itself checks it and says so by its exit code.

use std::process::Command;

#[test]
fn the_demonstration_tells_the_truth_and_leaves_nothing_running() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let output = Command::new(e2e::platform_program())
        .args(["demo", "--source", root])
        .output()
        .expect("the program runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{told}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let left: Vec<String> = std::fs::read_dir("/proc")
        .expect("processes")
        .filter_map(|entry| {
            let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains("platform-demo-").then_some(line)
        })
        .collect();
    assert!(left.is_empty(), "still running: {left:#?}");
}
