//! A real PostgreSQL, started, killed and started again.

mod crash;
mod lifecycle;
mod parent;
mod roots;
