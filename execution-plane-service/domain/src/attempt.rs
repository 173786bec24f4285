//! The life of an attempt: one function from (where it stands, what happened) to what follows.
//!
//! Invariants:
//! - Every event has a defined outcome in every state.
//! - An attempt is granted at most once: a grant is only possible while nobody was ever granted it,
//!   because a durable lease counts as "may have started".
//! - The end of an attempt never changes.
//! - A report under another epoch than the attempt's changes nothing. Declaring an attempt lost
//!   takes the next epoch, so whatever its runner says afterwards is stale.

use contracts::{ExecutionStatus, JobStarted};

/// Where an attempt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    Queued,
    Leased,
    Starting,
    Running,
    Cancelling,
    Succeeded,
    Failed,
    Cancelled,
    TimedOut,
    Lost,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Queued,
        Self::Leased,
        Self::Starting,
        Self::Running,
        Self::Cancelling,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::TimedOut,
        Self::Lost,
    ];

    /// Nothing follows.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::TimedOut | Self::Lost
        )
    }

    /// A runner has it.
    #[must_use]
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Leased | Self::Starting | Self::Running | Self::Cancelling)
    }

    /// The word in the store and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Leased => "leased",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Lost => "lost",
        }
    }

    /// The state of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    const fn ended(status: ExecutionStatus) -> Self {
        match status {
            ExecutionStatus::Succeeded => Self::Succeeded,
            ExecutionStatus::Failed => Self::Failed,
            ExecutionStatus::Cancelled => Self::Cancelled,
            ExecutionStatus::TimedOut => Self::TimedOut,
        }
    }
}

/// What the rules need to know of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    pub state: State,
    /// 0 until it is granted.
    pub epoch: u64,
    /// The runner told that the job's process ran. Outlives the change to `Cancelling`.
    pub ran: bool,
}

/// How far the start is, as a runner tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Starting,
    Running,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A runner is given the attempt.
    Grant,
    /// The runner tells of the start.
    Started { epoch: u64, phase: Phase },
    /// Somebody wants it ended.
    CancelRequested,
    /// The runner tells of the end.
    Finished { epoch: u64, status: ExecutionStatus },
    /// The runner did not come back in time, or came back without it.
    RunnerLost,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The attempt is now this.
    Changed(Attempt),
    /// Known already, or no longer of interest.
    Unchanged,
    Refused(Refusal),
}

/// Why an event is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the attempt was granted before and may have started")]
    MayHaveStarted,
    #[error("the attempt has ended")]
    Ended,
    #[error("the report belongs to another epoch; the attempt's is {current}")]
    StaleEpoch { current: u64 },
    #[error("no runner has the attempt")]
    NotHeld,
}

impl Attempt {
    /// Just accepted.
    pub const QUEUED: Self = Self {
        state: State::Queued,
        epoch: 0,
        ran: false,
    };

    /// What follows from `event`.
    #[must_use]
    pub const fn apply(self, event: Event) -> Outcome {
        match event {
            Event::Grant => self.grant(),
            Event::Started { epoch, phase } => self.started(epoch, phase),
            Event::CancelRequested => self.cancel(),
            Event::Finished { epoch, status } => self.finished(epoch, status),
            Event::RunnerLost => self.lost(),
        }
    }

    /// Whether the job had begun, as far as is known, should its runner be lost now.
    #[must_use]
    pub const fn job_started(self) -> JobStarted {
        match self.state {
            State::Queued => JobStarted::No,
            _ if self.ran => JobStarted::Yes,
            _ => JobStarted::Unknown,
        }
    }

    const fn to(self, state: State) -> Outcome {
        Outcome::Changed(Self { state, ..self })
    }

    const fn grant(self) -> Outcome {
        match self.state {
            State::Queued => Outcome::Changed(Self {
                state: State::Leased,
                epoch: self.epoch + 1,
                ran: false,
            }),
            state if state.is_terminal() => Outcome::Refused(Refusal::Ended),
            _ => Outcome::Refused(Refusal::MayHaveStarted),
        }
    }

    const fn started(self, epoch: u64, phase: Phase) -> Outcome {
        if let Some(refusal) = self.fence(epoch) {
            return Outcome::Refused(refusal);
        }
        match (self.state, phase) {
            (State::Leased, Phase::Starting) => self.to(State::Starting),
            (State::Leased | State::Starting, Phase::Running) => Outcome::Changed(Self {
                state: State::Running,
                ran: true,
                ..self
            }),
            // The cancel stands; that it ran is worth knowing.
            (State::Cancelling, Phase::Running) if !self.ran => Outcome::Changed(Self { ran: true, ..self }),
            _ => Outcome::Unchanged,
        }
    }

    const fn cancel(self) -> Outcome {
        match self.state {
            State::Queued => self.to(State::Cancelled),
            State::Leased | State::Starting | State::Running => self.to(State::Cancelling),
            _ => Outcome::Unchanged,
        }
    }

    const fn finished(self, epoch: u64, status: ExecutionStatus) -> Outcome {
        if let Some(refusal) = self.fence(epoch) {
            return Outcome::Refused(refusal);
        }
        if self.state.is_terminal() {
            return Outcome::Refused(Refusal::Ended);
        }
        self.to(State::ended(status))
    }

    const fn lost(self) -> Outcome {
        match self.state {
            State::Queued => Outcome::Refused(Refusal::NotHeld),
            state if state.is_terminal() => Outcome::Unchanged,
            _ => Outcome::Changed(Self {
                state: State::Lost,
                epoch: self.epoch + 1,
                ..self
            }),
        }
    }

    const fn fence(self, epoch: u64) -> Option<Refusal> {
        if self.epoch == 0 {
            return Some(Refusal::NotHeld);
        }
        if self.epoch != epoch {
            return Some(Refusal::StaleEpoch { current: self.epoch });
        }
        None
    }
}

#[cfg(test)]
mod tests;
