//! The list of failpoints and the code, held against each other.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_declared_failpoint_is_in_the_code_and_the_other_way_round() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let found = failpoints::names_in_source(&source).unwrap();
    let declared: BTreeSet<String> = execution_plane_runner::FAILPOINTS
        .iter()
        .map(|&name| name.to_owned())
        .collect();
    assert_eq!(found, declared);
}
