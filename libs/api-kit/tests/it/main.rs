//! The rules of every API, on a small notebook service that uses all of them.

mod building;
mod cursor;
mod end;
mod gate;
mod idempotency;
mod live;
mod notebook;
mod overload;
mod rescue;
mod stream;
mod strict_json;
mod walking;
