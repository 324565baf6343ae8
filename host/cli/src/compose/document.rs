//! A YAML document, read so that nothing in it is passed over: each field is read or its name is noted.

use std::cell::RefCell;
use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode, ScalarOwned, YamlOwned};

use super::variables::Variables;

/// What all nodes of a document know.
#[derive(Debug)]
pub struct Document {
    root: YamlOwned,
    variables: Variables,
    /// Fields that nobody reads.
    unsupported: RefCell<Vec<String>>,
}

/// A place in a document.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    document: &'a Document,
    yaml: &'a YamlOwned,
    /// From the root, with dots.
    pub path: String,
}

/// A mapping's fields, by name.
pub type Fields<'a> = BTreeMap<String, Node<'a>>;

impl Document {
    /// Reads `text`.
    ///
    /// Errors: a sentence.
    pub fn parse(text: &str, variables: Variables) -> Result<Self, String> {
        let documents = YamlOwned::load_from_str(text);
        let documents = documents.map_err(|error| format!("It is not YAML: {error}."))?;
        let mut documents = documents.into_iter();
        match (documents.next(), documents.next()) {
            (Some(root), None) => Ok(Self {
                root,
                variables,
                unsupported: RefCell::default(),
            }),
            _ => Err("It is not one YAML document.".into()),
        }
    }

    /// The whole of it.
    pub fn root(&self) -> Node<'_> {
        Node {
            document: self,
            yaml: &self.root,
            path: String::new(),
        }
    }

    /// Fails if something was not read; a sentence that names all of it.
    pub fn check(&self) -> Result<(), String> {
        let unsupported = self.unsupported.borrow();
        match unsupported.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "Sietch does not support what it asks for: {}.",
                unsupported.join(", ")
            )),
        }
    }
}

impl<'a> Node<'a> {
    /// Whether nothing is there.
    pub fn is_null(&self) -> bool {
        matches!(self.yaml, YamlOwned::Value(ScalarOwned::Null))
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.yaml, YamlOwned::Sequence(_))
    }

    /// Whether it is a mapping.
    pub fn is_mapping(&self) -> bool {
        matches!(self.yaml, YamlOwned::Mapping(_))
    }

    /// Notes that this is not supported.
    pub fn refuse(&self) {
        self.refuse_as(&self.path);
    }

    /// Notes that something here is not supported.
    pub fn refuse_as(&self, words: &str) {
        self.document.unsupported.borrow_mut().push(words.into());
    }

    /// The fields of a mapping, of which only `known` ones are supported; `x-` fields are anybody's.
    pub fn fields(&self, known: &[&str]) -> Result<Fields<'a>, String> {
        let mut fields = self.entries()?;
        fields.retain(|name, node| {
            let is_known = known.contains(&name.as_str());
            if !is_known && !name.starts_with("x-") {
                node.refuse();
            }
            is_known
        });
        Ok(fields)
    }

    /// The fields of a mapping, whatever their names are.
    pub fn entries(&self) -> Result<Fields<'a>, String> {
        let mapping = match self.yaml {
            YamlOwned::Mapping(mapping) => mapping,
            _ if self.is_null() => return Ok(Fields::new()),
            _ => return Err(self.wrong("a mapping")),
        };
        let entry = |(key, value): (&'a YamlOwned, &'a YamlOwned)| {
            let name = scalar(key).ok_or_else(|| self.wrong("a mapping with plain names"))?;
            let node = self.child(&name, value);
            Ok((name, node))
        };
        mapping.iter().map(entry).collect()
    }

    /// The items of a list, or the one thing that stands for it.
    pub fn items(&self) -> Vec<Node<'a>> {
        match self.yaml {
            YamlOwned::Sequence(items) => {
                let items = items.iter().enumerate();
                items
                    .map(|(number, item)| self.child(&number.to_string(), item))
                    .collect()
            }
            _ if self.is_null() => Vec::new(),
            _ => vec![self.clone()],
        }
    }

    /// A text or a number, with variables' values.
    pub fn text(&self) -> Result<String, String> {
        let text = scalar(self.yaml).ok_or_else(|| self.wrong("a text"))?;
        self.document.variables.substitute(&text)
    }

    /// The texts of a list, or the one.
    pub fn texts(&self) -> Result<Vec<String>, String> {
        self.items().iter().map(Node::text).collect()
    }

    /// `true` or `false`.
    pub fn flag(&self) -> Result<bool, String> {
        let text = self.text()?;
        text.parse().map_err(|_| self.wrong("true or false"))
    }

    /// The sentence that this should have been `what`.
    pub fn wrong(&self, what: &str) -> String {
        match self.path.as_str() {
            "" => format!("It should be {what}."),
            path => format!("{path} should be {what}."),
        }
    }

    fn child(&self, name: &str, yaml: &'a YamlOwned) -> Node<'a> {
        Node {
            document: self.document,
            yaml,
            path: match self.path.as_str() {
                "" => name.into(),
                path => format!("{path}.{name}"),
            },
        }
    }
}

/// A scalar as it would be written; nothing for null.
fn scalar(yaml: &YamlOwned) -> Option<String> {
    let YamlOwned::Value(value) = yaml else {
        return None;
    };
    Some(match value {
        ScalarOwned::Null => String::new(),
        ScalarOwned::Boolean(value) => value.to_string(),
        ScalarOwned::Integer(value) => value.to_string(),
        ScalarOwned::FloatingPoint(value) => value.to_string(),
        ScalarOwned::String(value) => value.clone(),
    })
}
