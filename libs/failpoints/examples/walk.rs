//! Reaches its two failpoints three times each: the process that the tests kill.

failpoints::register! {
    /// The failpoints of this walk.
    const WALK = ["walk.step.before", "walk.step.after"];
}

fn main() {
    failpoints::declare(WALK);
    for _ in 0..3 {
        failpoints::hit("walk.step.before");
        failpoints::hit("walk.step.after");
    }
    if std::env::args().nth(1).as_deref() == Some("stray") {
        failpoints::hit("walk.step.sideways");
    }
}
