//! What a crate is in the architecture, told by its directory: `ls` shows it, so the check reads
//! the same.

/// The place of one of our crates. Services are named without their suffix `-service`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Kernel,
    Contracts,
    Library,
    Api(String),
    Domain(String),
    Ports(String),
    Server(String),
    Runner(String),
    Adapter,
    /// The binary, stories, benchmarks, checks: they put things together.
    Tool,
}

impl Part {
    pub fn of(directory: &str) -> Option<Self> {
        let (first, rest) = directory.split_once('/').unwrap_or((directory, ""));
        if let Some(service) = first.strip_suffix("-service") {
            let service = service.to_owned();
            return match rest.split('/').next()? {
                "api" => Some(Self::Api(service)),
                "domain" => Some(Self::Domain(service)),
                "ports" => Some(Self::Ports(service)),
                "server" => Some(Self::Server(service)),
                "runner" => Some(Self::Runner(service)),
                _ => None,
            };
        }
        match (first, rest) {
            ("libs", "kernel") => Some(Self::Kernel),
            ("libs", _) => Some(Self::Library),
            ("contracts", "") => Some(Self::Contracts),
            ("adapters", _) => Some(Self::Adapter),
            ("cli" | "e2e" | "bench" | "xtask", _) => Some(Self::Tool),
            _ => None,
        }
    }

    /// No I/O, no runtime, no database behind it, however far away.
    pub fn is_pure(&self) -> bool {
        matches!(self, Self::Kernel | Self::Contracts | Self::Domain(_))
    }

    /// Whether some crates are kept away from it however indirectly they would come.
    pub fn is_restricted(&self) -> bool {
        self.is_pure() || matches!(self, Self::Api(_) | Self::Ports(_))
    }

    /// Whether what ships of `self` may use `other`, whose crate is called `name`.
    pub fn may_use(&self, other: &Self, name: &str) -> bool {
        match self {
            Self::Kernel => false,
            Self::Contracts => *other == Self::Kernel,
            Self::Library => matches!(other, Self::Kernel | Self::Contracts | Self::Library),
            Self::Domain(own) => matches!(other, Self::Kernel | Self::Contracts) || *other == Self::Domain(own.clone()),
            Self::Ports(own) => Self::Domain(own.clone()).may_use(other, name),
            Self::Api(own) => {
                let library = *other == Self::Library && ["client-kit", "problem", "identity", "audit"].contains(&name);
                library || Self::Domain(own.clone()).may_use(other, name)
            }
            Self::Server(own) => match other {
                Self::Kernel | Self::Contracts | Self::Library | Self::Api(_) => true,
                Self::Domain(service) | Self::Ports(service) => service == own,
                _ => false,
            },
            Self::Runner(own) => match other {
                Self::Kernel | Self::Contracts | Self::Library => true,
                Self::Api(service) | Self::Domain(service) | Self::Ports(service) => service == own,
                _ => false,
            },
            Self::Adapter => {
                matches!(
                    other,
                    Self::Kernel | Self::Contracts | Self::Library | Self::Ports(_) | Self::Api(_)
                )
            }
            Self::Tool => true,
        }
    }

    /// Tests may use adapters as the real thing behind a port, and an adapter's tests the real service that it
    /// reaches, beside all that ships may use.
    pub fn tests_may_use(&self, other: &Self, name: &str) -> bool {
        let real_thing = *other == Self::Adapter && matches!(self, Self::Server(_) | Self::Runner(_) | Self::Adapter);
        let reached = matches!((self, other), (Self::Adapter, Self::Server(_)));
        let own_crates = matches!((self, other), (Self::Library, Self::Library));
        real_thing || reached || own_crates || self.may_use(other, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_tell_the_part() {
        let service = || "control-plane".to_owned();
        for (directory, part) in [
            ("control-plane-service/api", Some(Part::Api(service()))),
            ("control-plane-service/domain/plan", Some(Part::Domain(service()))),
            ("control-plane-service/server", Some(Part::Server(service()))),
            ("libs/kernel", Some(Part::Kernel)),
            ("libs/outbox", Some(Part::Library)),
            ("adapters/secrets-age", Some(Part::Adapter)),
            ("cli", Some(Part::Tool)),
            ("stray", None),
        ] {
            assert_eq!(Part::of(directory), part, "{directory}");
        }
    }
}
