//! In which order services start.

use std::collections::BTreeMap;

/// The names of `dependencies`, each after those that it depends on, else by name.
///
/// Errors: a sentence, for a circle and for a name that is not there.
pub fn order(dependencies: &BTreeMap<String, Vec<String>>) -> Result<Vec<String>, String> {
    for (name, wanted) in dependencies {
        if let Some(missing) = wanted
            .iter()
            .find(|other| !dependencies.contains_key(*other))
        {
            return Err(format!("{name} depends on {missing}, which is no service."));
        }
    }
    let mut ordered: Vec<String> = Vec::new();
    while ordered.len() < dependencies.len() {
        let is_ready = |wanted: &[String]| wanted.iter().all(|other| ordered.contains(other));
        let ready = dependencies
            .iter()
            .find(|(name, wanted)| !ordered.contains(name) && is_ready(wanted));
        let Some((name, _)) = ready else {
            let left = dependencies.keys().filter(|name| !ordered.contains(name));
            let left: Vec<&str> = left.map(String::as_str).collect();
            return Err(format!("These depend on each other: {}.", left.join(", ")));
        };
        ordered.push(name.clone());
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(pairs: &[(&str, &[&str])]) -> Result<Vec<String>, String> {
        let texts = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let pairs = pairs.iter();
        order(
            &pairs
                .map(|(name, wanted)| (name.to_string(), texts(wanted)))
                .collect(),
        )
    }

    #[test]
    fn what_others_depend_on_comes_first() {
        let pairs: [(&str, &[&str]); 4] = [
            ("app", &["db", "cache"]),
            ("cache", &[]),
            ("db", &["init"]),
            ("init", &[]),
        ];
        assert_eq!(ordered(&pairs).unwrap(), ["cache", "init", "db", "app"]);
    }

    #[test]
    fn a_circle_and_an_unknown_name_are_told() {
        let circle = ordered(&[("a", &["b"]), ("b", &["a"]), ("c", &[])]);
        assert_eq!(circle.unwrap_err(), "These depend on each other: a, b.");
        let unknown = ordered(&[("a", &["x"])]);
        assert_eq!(unknown.unwrap_err(), "a depends on x, which is no service.");
    }
}
