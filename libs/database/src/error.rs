//! Why the database could not be used, told apart by what a caller does about it.

/// A fault at the border to PostgreSQL. The text never holds a URL, a password or SQL.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The URL cannot be understood.
    #[error("the database URL is not valid: {0}")]
    Url(String),
    /// No connection could be had: the server is away, or the pool is exhausted.
    #[error("no database connection could be had")]
    Unavailable(#[source] Box<dyn core::error::Error + Send + Sync>),
    /// A statement failed in sqlx.
    #[error("a database statement failed")]
    Sqlx(#[source] sqlx::Error),
    /// A statement failed in tokio-postgres.
    #[error("a database statement failed")]
    Postgres(#[source] tokio_postgres::Error),
    /// A migration failed or does not match what was applied before.
    #[error("the migrations could not be applied")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// The server is older than what the platform relies on.
    #[error("PostgreSQL {found} is too old: 15 or newer is needed")]
    TooOld {
        /// The server's version number, like 140009.
        found: i32,
    },
}

/// The SQLSTATEs that callers act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlState {
    /// 23505.
    UniqueViolation,
    /// 23503.
    ForeignKeyViolation,
    /// 23514.
    CheckViolation,
    /// 40001 or 40P01: run the transaction again.
    Serialization,
    /// 57014: the statement timeout, or a cancel.
    QueryCanceled,
    /// 55P03.
    LockNotAvailable,
    /// 42501, among them a row that row-level security refused.
    InsufficientPrivilege,
    /// 57P01, 57P02, 57P03 or class 08: the server ends, starts, or lost the connection.
    ConnectionLost,
    /// 53100: no space left where the server writes.
    DiskFull,
    /// The rest of class 53: no memory or no connection left.
    Exhausted,
    /// Any other.
    Other,
}

impl SqlState {
    fn from_code(code: &str) -> Self {
        match code {
            "23505" => Self::UniqueViolation,
            "23503" => Self::ForeignKeyViolation,
            "23514" => Self::CheckViolation,
            "40001" | "40P01" => Self::Serialization,
            "57014" => Self::QueryCanceled,
            "55P03" => Self::LockNotAvailable,
            "42501" => Self::InsufficientPrivilege,
            "57P01" | "57P02" | "57P03" => Self::ConnectionLost,
            code if code.starts_with("08") => Self::ConnectionLost,
            "53100" => Self::DiskFull,
            code if code.starts_with("53") => Self::Exhausted,
            _ => Self::Other,
        }
    }

    /// The state of an sqlx error, if the server answered.
    #[must_use]
    pub fn of_sqlx(error: &sqlx::Error) -> Option<Self> {
        let code = error.as_database_error()?.code()?;
        Some(Self::from_code(&code))
    }

    /// The state of a tokio-postgres error, if the server answered.
    #[must_use]
    pub fn of_postgres(error: &tokio_postgres::Error) -> Option<Self> {
        Some(Self::from_code(error.code()?.code()))
    }
}

impl DatabaseError {
    /// The SQLSTATE, if the server answered.
    #[must_use]
    pub fn sql_state(&self) -> Option<SqlState> {
        match self {
            Self::Sqlx(error) => SqlState::of_sqlx(error),
            Self::Postgres(error) => SqlState::of_postgres(error),
            _ => None,
        }
    }

    /// The name of the violated constraint, if one was.
    #[must_use]
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Sqlx(error) => error.as_database_error()?.constraint(),
            Self::Postgres(error) => error.as_db_error()?.constraint(),
            _ => None,
        }
    }

    /// Whether running the whole transaction again may succeed: at once or, when the server is short of
    /// something or a statement took too long, later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::Postgres(error) if error.is_closed() => true,
            Self::Sqlx(sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut) => true,
            other => matches!(
                other.sql_state(),
                Some(
                    SqlState::Serialization
                        | SqlState::ConnectionLost
                        | SqlState::QueryCanceled
                        | SqlState::LockNotAvailable
                        | SqlState::DiskFull
                        | SqlState::Exhausted
                )
            ),
        }
    }
}

impl From<sqlx::Error> for DatabaseError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) => {
                Self::Unavailable(Box::new(error))
            }
            other => Self::Sqlx(other),
        }
    }
}

impl From<tokio_postgres::Error> for DatabaseError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<deadpool_postgres::PoolError> for DatabaseError {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        Self::Unavailable(Box::new(error))
    }
}
