//! Lists of properties as arguments.

use linkctl::Setting;

/// From `name=value[,value...][,name=value...]`: a part with `=` begins another property.
pub fn parse(text: &str) -> Result<Vec<Setting>, String> {
    let mut settings: Vec<Setting> = Vec::new();
    for part in text.split(',') {
        match (part.split_once('='), settings.last_mut()) {
            (Some((name, value)), _) => settings.push(Setting {
                name: name.into(),
                value: value.into(),
            }),
            (None, Some(last)) => {
                last.value.push(',');
                last.value.push_str(part);
            }
            (None, None) => return Err(format!("{part} is no property with its value")),
        }
    }
    Ok(settings)
}

/// From `name[,name...]`.
pub fn names(text: Option<&str>) -> Option<Vec<&str>> {
    text.map(|text| text.split(',').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_be_lists() {
        let parsed = parse("allowed-ips=10.0.0.1,10.0.0.2,priority=high,cpus=").expect("fine");
        let parsed: Vec<_> = parsed
            .iter()
            .map(|one| (one.name.as_str(), one.value.as_str()))
            .collect();
        let expected = [
            ("allowed-ips", "10.0.0.1,10.0.0.2"),
            ("priority", "high"),
            ("cpus", ""),
        ];
        assert_eq!(parsed, expected);
        assert!(parse("mtu").is_err() && parse("").is_err());
    }
}
