//! Who the program is: a name of the image's `/etc/passwd` and `/etc/group`, or a number.

use crate::error::{Error, Result};

/// The program's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub uid: u32,
    /// Its group's.
    pub gid: u32,
    /// Its folder.
    pub home: String,
}

impl Account {
    /// `USER[:GROUP]`; nothing is root. A number that is nobody's has group 0, as docker has it.
    ///
    /// Errors: `UnknownUser`.
    pub(crate) fn find(wanted: &str, passwd: &str, group: &str) -> Result<Self> {
        let (user, wanted_group) = match wanted.split_once(':') {
            Some((user, group)) => (user, Some(group).filter(|group| !group.is_empty())),
            None => (wanted, None),
        };
        let user = if user.is_empty() { "0" } else { user };
        let row = row(passwd, user);
        let field = |at: usize| row.as_ref().and_then(|fields| fields.get(at).copied());
        let number = |text: &str| text.parse::<u32>().ok();
        let unknown = |what, name: &str| Error::UnknownUser {
            what,
            name: name.into(),
        };
        // A name first: one may consist of digits.
        let uid = field(2).and_then(number).or_else(|| number(user));
        let gid = match wanted_group {
            Some(name) => self::row(group, name)
                .and_then(|row| number(row.get(2)?))
                .or_else(|| number(name))
                .ok_or_else(|| unknown("group", name))?,
            None => field(3).and_then(number).unwrap_or(0),
        };
        let home = field(5).filter(|home| !home.is_empty()).unwrap_or("/");
        Ok(Self {
            uid: uid.ok_or_else(|| unknown("user", user))?,
            gid,
            home: home.into(),
        })
    }
}

/// The row of a name or a number.
fn row<'a>(table: &'a str, wanted: &str) -> Option<Vec<&'a str>> {
    let rows = || {
        table
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
    };
    let is_called = |row: &Vec<&str>| row.first() == Some(&wanted);
    let has_number = |row: &Vec<&str>| row.get(2) == Some(&wanted);
    rows().find(is_called).or_else(|| rows().find(has_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\nredis:x:101:102::/var/lib/redis:/bin/false\n";
    const GROUP: &str = "root:x:0:\nstaff:x:50:\n";

    #[test]
    fn users_and_groups_are_names_or_numbers_of_the_image() {
        let find = |text: &str| {
            let account = Account::find(text, PASSWD, GROUP).ok()?;
            Some((account.uid, account.gid, account.home))
        };
        assert_eq!(find(""), Some((0, 0, "/root".into())));
        assert_eq!(find("redis"), Some((101, 102, "/var/lib/redis".into())));
        assert_eq!(
            find("redis:staff"),
            Some((101, 50, "/var/lib/redis".into()))
        );
        assert_eq!(find("1000"), Some((1000, 0, "/".into())));
        assert_eq!(find("1000:7"), Some((1000, 7, "/".into())));
        assert_eq!(find("nobody"), None);
        assert_eq!(find("redis:none"), None);
    }
}
