//! Exit codes, for scripts. They are part of the interface and listed in `platform help exit-codes`.

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked; an operation that was waited for succeeded.
    Success,
    /// The operation that was waited for ended failed, or a proof did not hold.
    Untrue,
    /// The command line or an input file is wrong.
    Usage,
    /// The platform refused the request (invalid, unsatisfiable).
    Refused,
    /// There is no such thing.
    NotFound,
    /// It moved meanwhile, or is not in a state that allows this.
    Conflict,
    /// The token is missing, expired or may not do this.
    Forbidden,
    /// A service cannot be reached.
    Unreachable,
    /// The operation that was waited for waits for a person.
    Waiting,
    /// The operation that was waited for cannot go on before somebody has settled an outcome.
    Unresolved,
    /// The operation that was waited for was cancelled.
    Cancelled,
    /// A fault of the platform itself.
    Internal,
}

impl Exit {
    /// Number, word and meaning of every code.
    pub const ALL: [(Self, u8, &'static str); 12] = [
        (Self::Success, 0, "done as asked; a watched operation succeeded"),
        (Self::Untrue, 1, "a watched operation failed, or a proof does not hold"),
        (
            Self::Usage,
            2,
            "the command line or an input file is wrong; nothing was sent",
        ),
        (
            Self::Refused,
            3,
            "the platform refused the request: invalid or unsatisfiable",
        ),
        (Self::NotFound, 4, "there is no such thing"),
        (
            Self::Conflict,
            5,
            "it changed meanwhile, or its state does not allow this",
        ),
        (Self::Forbidden, 6, "the token is missing, expired, or may not do this"),
        (Self::Unreachable, 7, "a service cannot be reached"),
        (
            Self::Waiting,
            8,
            "a watched operation waits for a person (--until-gate)",
        ),
        (Self::Cancelled, 9, "a watched operation was cancelled"),
        (
            Self::Unresolved,
            10,
            "a watched operation is unresolved: what became of a node is not known, and wants 'platform resolve'",
        ),
        (Self::Internal, 70, "a fault of the platform itself"),
    ];

    /// The number that the process exits with.
    pub fn code(self) -> u8 {
        Self::ALL
            .iter()
            .find(|(exit, ..)| *exit == self)
            .map_or(70, |(_, code, _)| *code)
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;
    use std::collections::BTreeSet;

    #[test]
    fn every_exit_has_a_number_of_its_own() {
        let numbers: BTreeSet<u8> = Exit::ALL.iter().map(|(exit, ..)| exit.code()).collect();
        assert_eq!(numbers.len(), Exit::ALL.len());
    }
}
