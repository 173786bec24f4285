//! Finding failpoints in source text, so that a list and the code are held against each other
//! without running anything.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Every literal name in a call of `hit` below `directory`, in `.rs` files.
///
/// # Errors
/// The directory cannot be read.
pub fn names_in_source(directory: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(names_in(&fs::read_to_string(&path)?));
            }
        }
    }
    Ok(names)
}

fn names_in(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split("failpoints::hit(")
        .skip(1)
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
        .map(str::to_owned)
}
