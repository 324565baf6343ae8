//! `-u`: as whom the program runs.

use std::fs;
use std::str::FromStr;

/// `USER[:GROUP]`, by numbers or by this host's names, which a packed image has too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The group's.
    pub gid: u32,
    /// Its folder.
    pub home: String,
}

impl FromStr for User {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::find(text, &read("/etc/passwd"), &read("/etc/group"))
    }
}

/// A host without the file knows no names.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

impl User {
    fn find(text: &str, passwd: &str, group: &str) -> Result<Self, String> {
        const FORM: &str = "give USER[:GROUP], by number or by name";
        let (user, wanted) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let row = row(passwd, user);
        let field = |at: usize| row.as_ref().and_then(|fields| fields.get(at).copied());
        let number = |text: &str| text.parse::<u32>().ok();
        let unknown = |what: &str, name: &str| format!("this host knows no {what} {name}: {FORM}");
        let uid = number(user).or_else(|| number(field(2)?));
        let uid = uid.ok_or_else(|| unknown("user", user))?;
        let gid = match wanted {
            Some(name) => number(name)
                .or_else(|| number(self::row(group, name)?.get(2)?))
                .ok_or_else(|| unknown("group", name))?,
            // As docker has it for a number that is nobody's.
            None => field(3).and_then(number).unwrap_or(0),
        };
        let home = field(5).unwrap_or("/").to_string();
        Ok(Self { uid, gid, home })
    }
}

/// The row of a name or a number.
fn row<'a>(table: &'a str, wanted: &str) -> Option<Vec<&'a str>> {
    let rows = table
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let is_it = |row: &Vec<&str>| row.first() == Some(&wanted) || row.get(2) == Some(&wanted);
    rows.into_iter().find(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\ndb:x:101:102::/var/lib/db:/bin/false\n";
    const GROUP: &str = "root:x:0:\nstaff:x:50:\n";

    #[test]
    fn users_and_groups_are_numbers_or_names() {
        let find = |text: &str| {
            User::find(text, PASSWD, GROUP).map(|user| (user.uid, user.gid, user.home))
        };
        assert_eq!(find("db"), Ok((101, 102, "/var/lib/db".into())));
        assert_eq!(find("101"), Ok((101, 102, "/var/lib/db".into())));
        assert_eq!(find("db:staff"), Ok((101, 50, "/var/lib/db".into())));
        assert_eq!(find("1234"), Ok((1234, 0, "/".into())));
        assert_eq!(find("1234:77"), Ok((1234, 77, "/".into())));
        for wrong in ["", "nobody-known", "db:", "db:none", "-1", "1:2:3"] {
            assert!(find(wrong).is_err(), "{wrong:?}");
        }
    }
}
