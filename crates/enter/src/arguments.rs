//! The arguments of `run` and `enter`: `--name value` or `--flag`, any number of times, then `--` and the program.

use std::str::FromStr;

/// Names without a value.
const FLAGS: [&str; 7] =
    ["channel", "fork", "input", "network", "no-landlock", "no-seccomp", "no-cgroup"];

#[derive(Debug, Default)]
pub struct Arguments {
    options: Vec<(String, String)>,
    pub program: Vec<String>,
}

impl Arguments {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut parsed = Arguments::default();
        while let Some(word) = words.next() {
            if word == "--" {
                parsed.program = words.collect();
                break;
            }
            let name = word.strip_prefix("--").ok_or(format!("{word:?} is no option"))?.to_owned();
            let value = if FLAGS.contains(&name.as_str()) {
                String::new()
            } else {
                words.next().ok_or(format!("--{name} has no value"))?
            };
            parsed.options.push((name, value));
        }
        if parsed.program.is_empty() {
            return Err("there is no program behind --".to_owned());
        }
        Ok(parsed)
    }

    pub fn has(&self, flag: &str) -> bool {
        self.options.iter().any(|(name, _)| name == flag)
    }

    /// All values of this name.
    pub fn all<'given>(&'given self, wanted: &'given str) -> impl Iterator<Item = &'given str> {
        self.options.iter().filter(move |(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    /// The last value of this name.
    pub fn last<'given>(&'given self, wanted: &'given str) -> Option<&'given str> {
        self.all(wanted).last()
    }

    /// The last value of this name, as a number.
    pub fn number<T: FromStr>(&self, wanted: &str) -> Result<Option<T>, String> {
        let Some(text) = self.last(wanted) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("--{wanted} is {text:?}, and no number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, String> {
        Arguments::parse(words.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn options_come_before_the_program() {
        let given = parse(&["--read", "/a", "--fork", "--read", "/b", "--", "node", "--read"]);
        let given = given.expect("well formed");
        assert_eq!(given.all("read").collect::<Vec<_>>(), ["/a", "/b"]);
        assert!(given.has("fork") && !given.has("network"));
        assert_eq!(given.program, ["node", "--read"]);
    }

    #[test]
    fn anything_else_is_refused() {
        for words in [&["node"][..], &["--read"], &["--read", "/a"], &["--"], &["--fork", "node"]] {
            assert!(parse(words).is_err(), "{words:?}");
        }
        let given = parse(&["--memory", "12x", "--", "node"]).expect("well formed");
        assert!(given.number::<u64>("memory").is_err());
        assert_eq!(given.number::<u64>("tasks"), Ok(None));
    }
}
