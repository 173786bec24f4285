//! A PostgreSQL URL, understood once and turned into the options of both client libraries.
//!
//! sqlx and tokio-postgres disagree on how a Unix socket is spelled; here either spelling
//! (`postgres://user@/db?host=/dir` and `postgres://user@%2Fdir/db`) is read, and both libraries
//! get the same parts.

use core::fmt;
use core::fmt::Write as _;
use core::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio_postgres::config::Host;

use crate::error::DatabaseError;

/// The organization set where none was chosen: it owns nothing.
pub(crate) const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// Where a database is and as whom to connect. `Debug` hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    host: String,
    port: u16,
    user: String,
    password: Option<String>,
    database: String,
}

/// What a session is told when it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionSettings {
    pub statement_timeout: Duration,
    pub idle_in_transaction_timeout: Duration,
}

impl SessionSettings {
    fn options(self) -> String {
        format!(
            "-c app.organization_id={NOBODY} -c statement_timeout={} -c idle_in_transaction_session_timeout={}",
            self.statement_timeout.as_millis(),
            self.idle_in_transaction_timeout.as_millis()
        )
    }
}

impl DatabaseUrl {
    /// The same server and user, another database.
    #[must_use]
    pub fn with_database(&self, database: &str) -> Self {
        Self {
            database: database.to_owned(),
            ..self.clone()
        }
    }

    /// The same server and database, another user.
    #[must_use]
    pub fn with_user(&self, user: &str, password: Option<&str>) -> Self {
        Self {
            user: user.to_owned(),
            password: password.map(str::to_owned),
            ..self.clone()
        }
    }

    /// The database's name.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The user's name.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    #[cfg(feature = "testing")]
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The whole URL *with its password*, in a spelling that both libraries and `psql` read. For a
    /// private config file or a child's environment; never for a log or an argument list.
    #[must_use]
    pub fn expose(&self) -> String {
        let mut url = format!("postgres://{}", percent(&self.user));
        if let Some(password) = &self.password {
            url.push(':');
            url.push_str(&percent(password));
        }
        // Writing to a String cannot fail.
        let _ = write!(url, "@{}:{}/{}", self.host_part(), self.port, percent(&self.database));
        url
    }

    fn host_part(&self) -> String {
        if self.is_socket() {
            percent(&self.host)
        } else if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        }
    }

    fn is_socket(&self) -> bool {
        self.host.starts_with('/')
    }

    /// Options for tokio-postgres.
    pub(crate) fn postgres_config(&self, application: &str, session: SessionSettings) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config
            .user(&self.user)
            .dbname(&self.database)
            .port(self.port)
            .application_name(application)
            .connect_timeout(Duration::from_secs(10))
            .options(session.options());
        if self.is_socket() {
            config.host_path(&self.host);
        } else {
            config.host(&self.host);
        }
        if let Some(password) = &self.password {
            config.password(password);
        }
        config
    }

    /// Options for sqlx.
    pub(crate) fn sqlx_options(&self, application: &str, session: SessionSettings) -> PgConnectOptions {
        let mut options = PgConnectOptions::new_without_pgpass()
            .port(self.port)
            .username(&self.user)
            .database(&self.database)
            .application_name(application)
            .ssl_mode(PgSslMode::Disable)
            .options([
                ("app.organization_id", NOBODY.to_owned()),
                ("statement_timeout", session.statement_timeout.as_millis().to_string()),
                (
                    "idle_in_transaction_session_timeout",
                    session.idle_in_transaction_timeout.as_millis().to_string(),
                ),
            ]);
        options = if self.is_socket() {
            options.socket(&self.host)
        } else {
            options.host(&self.host)
        };
        match &self.password {
            Some(password) => options.password(password),
            None => options,
        }
    }
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !(text.starts_with("postgres://") || text.starts_with("postgresql://")) {
            return Err(DatabaseError::Url("it starts with postgres://".into()));
        }
        // The library's error text may quote the URL, password and all.
        let config: tokio_postgres::Config = text
            .parse()
            .map_err(|_| DatabaseError::Url("postgres://user[:password]@host[:port]/database was expected".into()))?;
        let user = config.get_user().map(str::to_owned);
        let user = user.ok_or_else(|| DatabaseError::Url("it names no user".into()))?;
        let host = match config.get_hosts() {
            [Host::Tcp(host)] => host.clone(),
            [Host::Unix(directory)] => directory.to_string_lossy().into_owned(),
            [] => return Err(DatabaseError::Url("it names no host".into())),
            _ => return Err(DatabaseError::Url("it names several hosts; one is needed".into())),
        };
        let password = config
            .get_password()
            .map(|bytes| String::from_utf8(bytes.to_vec()))
            .transpose();
        Ok(Self {
            host,
            port: config.get_ports().first().copied().unwrap_or(5432),
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
            password: password.map_err(|_| DatabaseError::Url("the password is not UTF-8".into()))?,
        })
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "postgres://{}@{}:{}/{}",
            self.user,
            self.host_part(),
            self.port,
            self.database
        )
    }
}

fn percent(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
