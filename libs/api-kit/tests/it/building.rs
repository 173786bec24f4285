use api_kit::{AccessFault, BuildError, Rule};
use database::{Database, PoolSizes};
use identity::TrustStore;

use crate::notebook::{self, READERS};

fn faults(rules: Vec<Rule>) -> Vec<AccessFault> {
    let url = "postgres://nobody@127.0.0.1:1/nothing".parse().unwrap();
    let database = Database::open(&url, "test", PoolSizes::default()).unwrap();
    match notebook::build(&database, rules, TrustStore::new([])) {
        Ok(_) => Vec::new(),
        Err(BuildError::Access(faults)) => faults,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn an_operation_that_is_not_in_the_table_does_not_build() {
    let mut rules = notebook::rules();
    rules.remove(0);
    assert_eq!(faults(rules), [AccessFault::NotInTable("POST /v1/notes".into())]);
}

#[tokio::test]
async fn a_line_of_the_table_that_is_not_served_does_not_build() {
    let mut rules = notebook::rules();
    rules.push(Rule::new("DELETE", "/v1/notes", READERS));
    assert_eq!(faults(rules), [AccessFault::NotServed("DELETE /v1/notes".into())]);
}

#[tokio::test]
async fn two_lines_for_one_operation_and_a_line_for_nobody_do_not_build() {
    let mut rules = notebook::rules();
    rules[1] = Rule::new("GET", "/v1/notes", &[]);
    rules.push(Rule::new("GET", "/v1/wait", READERS));
    assert_eq!(
        faults(rules),
        [
            AccessFault::Twice("GET /v1/wait".into()),
            AccessFault::NoRole("GET /v1/notes".into())
        ]
    );
}

#[tokio::test]
async fn the_whole_table_builds() {
    assert_eq!(faults(notebook::rules()), []);
}
