//! `--format` and `--json`: the output format, equal for every command.

use clap::Arg;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Output formats. Each command offers some of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Format {
    /// Text for people
    Text,
    /// One object with stable keys, for programs
    Json,
    /// A graph for Graphviz: `dot -Tsvg`
    Dot,
    /// A drawing, for a browser or a paper
    Svg,
}

/// The output format.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(super) struct FormatOptions {
    /// Output format
    #[arg(long, short, value_enum, default_value = "text")]
    format: Format,

    /// Short for --format json; errors and warnings are JSON too then, a line each on the standard error
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl FormatOptions {
    /// JSON, or text.
    pub(super) const fn new(json: bool) -> FormatOptions {
        FormatOptions { format: Format::Text, json }
    }

    /// The format.
    pub(super) fn get(self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Whether the output is JSON.
    pub(super) fn is_json(self) -> bool {
        self.get() == Format::Json
    }
}

/// `--format` of commands without pictures.
pub(super) fn text_or_json(arg: Arg) -> Arg {
    arg.value_parser(only(&[Format::Text, Format::Json]))
}

/// `--format` of commands that draw graphs.
pub(super) fn text_json_or_dot(arg: Arg) -> Arg {
    arg.value_parser(only(&[Format::Text, Format::Json, Format::Dot]))
}

fn only(formats: &'static [Format]) -> impl TypedValueParser<Value = Format> {
    let values = formats.iter().filter_map(ValueEnum::to_possible_value);
    PossibleValuesParser::new(values).try_map(|name| Format::from_str(&name, false))
}
