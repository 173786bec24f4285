/// The named places of all roles at which a test can kill a process, one a line.
pub fn all() -> Vec<&'static str> {
    let lists = [
        resource_catalog_server::FAILPOINTS,
        control_plane_server::points::POINTS,
        execution_plane_server::FAILPOINTS,
        execution_plane_runner::FAILPOINTS,
    ];
    lists.concat()
}
