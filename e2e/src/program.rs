use std::path::PathBuf;

/// The `platform` binary: named by `PLATFORM_BINARY`, else the one beside this executable's build.
///
/// # Panics
/// When it was not built.
#[must_use]
pub fn platform_program() -> PathBuf {
    if let Some(named) = std::env::var_os("PLATFORM_BINARY") {
        return named.into();
    }
    let own = std::env::current_exe().expect("an executable knows where it is");
    let found = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join("platform"))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "the program 'platform' is not built beside {}: run `cargo build -p platform-cli` first",
            own.display()
        )
    })
}
