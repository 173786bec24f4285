/// An error with all its causes, the nearest first, in one line: what a log or a person is told.
#[must_use]
pub fn with_causes(error: &dyn core::error::Error) -> String {
    let causes = core::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_told_once_and_the_nearest_first() {
        #[derive(Debug, thiserror::Error)]
        #[error("the file cannot be read")]
        struct Outer(#[source] std::io::Error);
        let error = Outer(std::io::Error::other("no such disk"));
        assert_eq!(with_causes(&error), "the file cannot be read: no such disk");
        assert_eq!(with_causes(&std::io::Error::other("alone")), "alone");
    }
}
