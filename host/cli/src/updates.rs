//! What `sietch update` has changed of a machine, for the process that keeps it: `updates.json` in the machine's folder, written
//! whole each time. It is as old as the folder: a machine that is started anew has what its own line says.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::flags::RestartPolicy;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Updates {
    /// As it is typed.
    restart: Option<String>,
}

fn file(folder: &Path) -> PathBuf {
    folder.join("updates.json")
}

/// Whether the machine in `folder` is started again, if somebody has changed that.
pub fn restart_policy(folder: &Path) -> Option<RestartPolicy> {
    let updates: Updates = serde_json::from_slice(&fs::read(file(folder)).ok()?).ok()?;
    updates.restart?.parse().ok()
}

/// Changes it.
pub fn set_restart_policy(folder: &Path, policy: RestartPolicy) -> Result<(), Failure> {
    let updates = Updates {
        restart: Some(policy.to_string()),
    };
    let (path, draft) = (file(folder), folder.join("updates.json.new"));
    let text = serde_json::to_vec(&updates).unwrap_or_default();
    fs::write(&draft, text)
        .and_then(|()| fs::rename(&draft, &path))
        .map_err(Failure::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_was_changed_is_read_back() {
        let name = format!("sietch-updates-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("room");
        assert_eq!(restart_policy(&folder), None);
        let policy = RestartPolicy::OnFailure { times: Some(3) };
        set_restart_policy(&folder, policy).expect("room");
        assert_eq!(restart_policy(&folder), Some(policy));
        fs::remove_dir_all(folder).expect("ours");
    }
}
