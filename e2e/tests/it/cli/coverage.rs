//! Which commands there are, as `platform help` tells it.

use std::collections::BTreeSet;
use std::process::Command;

use e2e::platform_program;

/// Every command and command of a command: `apply`, `pack push`.
pub fn commands() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for command in below(&[]) {
        let inner = below(&[&command]);
        if inner.is_empty() {
            all.insert(command);
        } else {
            all.extend(inner.iter().map(|word| format!("{command} {word}")));
        }
    }
    all
}

/// The commands that the help of `words` lists.
fn below(words: &[&str]) -> Vec<String> {
    let output = Command::new(platform_program())
        .args(words)
        .arg("--help")
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{words:?} --help");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    listed
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| *word != "help")
        .map(str::to_owned)
        .collect()
}

/// Commands of `all` that nobody typed. What was typed begins with a command's words.
pub fn untried(all: &BTreeSet<String>, typed: &BTreeSet<String>) -> Vec<String> {
    let tried = |command: &&String| {
        typed
            .iter()
            .any(|line| line == *command || line.starts_with(&format!("{command} ")))
    };
    all.iter().filter(|command| !tried(command)).cloned().collect()
}
