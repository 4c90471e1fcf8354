//! What the system's table of users says: services and `env -i` start a foot without `HOME`.

use std::path::{Path, PathBuf};

/// The table, where users are kept in a file. Those of a directory service are not in it.
const TABLE: &str = "/etc/passwd";

/// The home folder of the user that this process runs as.
pub(super) fn home() -> Option<PathBuf> {
    let table = std::fs::read_to_string(TABLE).ok()?;
    home_in(&table, rustix::process::geteuid().as_raw())
}

/// A line is `name:password:uid:gid:comment:home:shell`.
fn home_in(table: &str, uid: u32) -> Option<PathBuf> {
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let home = Path::new(*fields.get(5)?);
        let is_user = fields.get(2)?.parse() == Ok(uid);
        // Users that nobody logs in as have `/`, which would be no home but everything.
        (is_user && home.is_absolute() && home.parent().is_some()).then(|| home.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_found_by_the_users_number() {
        let table = "# users\nroot:x:0:0:root:/root:/bin/sh\nnobody:x:99:99::/:/bin/false\nada:x:1000:1000:Ada:/srv/ada:/bin/sh\n";
        assert_eq!(home_in(table, 1000), Some("/srv/ada".into()));
        assert_eq!(home_in(table, 0), Some("/root".into()));
        assert_eq!((home_in(table, 99), home_in(table, 5)), (None, None));
    }
}
