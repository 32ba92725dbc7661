//! How a codelet says what its model is.

use super::Monomial;
use serde::{Deserialize, Serialize};

/// How expected durations are made from samples.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// By footprint: what was measured of tasks with the same sizes.
    History,
    /// As `a · sizeᵇ`; where that says nothing, by footprint.
    Regression,
    /// As `a · sizeᵇ + c`; where that says nothing, by footprint.
    NonLinear,
    /// As a sum of these products of the task's parameters, and an intercept; where that says nothing, by footprint.
    Multiple(Vec<Monomial>),
}

impl Kind {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Kind::History => "history",
            Kind::Regression => "regression",
            Kind::NonLinear => "nonlinear",
            Kind::Multiple(_) => "multiple",
        }
    }
}

/// A codelet's performance model: its name, under which it is stored, and its kind.
///
/// ```
/// use sched_model::{Kind, Model, Monomial};
/// let gemm = Model::multiple("gemm", [Monomial::from([1, 1, 1]), Monomial::from([1, 1, 0])]);
/// assert_eq!((gemm.symbol(), gemm.kind().name()), ("gemm", "multiple"));
/// assert_eq!(Model::history("potrf").kind(), &Kind::History);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    symbol: String,
    kind: Kind,
}

impl Model {
    fn new(symbol: impl Into<String>, kind: Kind) -> Model {
        Model { symbol: symbol.into(), kind }
    }

    /// By footprint: for codelets that run on few different sizes.
    pub fn history(symbol: impl Into<String>) -> Model {
        Model::new(symbol, Kind::History)
    }

    /// As `a · sizeᵇ`: for codelets that run on many sizes.
    pub fn regression(symbol: impl Into<String>) -> Model {
        Model::new(symbol, Kind::Regression)
    }

    /// As `a · sizeᵇ + c`: for codelets that run on many sizes, some of them small.
    pub fn nonlinear(symbol: impl Into<String>) -> Model {
        Model::new(symbol, Kind::NonLinear)
    }

    /// As a sum of products of parameters: for codelets whose time depends on more than one number.
    pub fn multiple(symbol: impl Into<String>, monomials: impl IntoIterator<Item = Monomial>) -> Model {
        Model::new(symbol, Kind::Multiple(monomials.into_iter().collect()))
    }

    /// A model of some kind.
    pub fn of_kind(symbol: impl Into<String>, kind: Kind) -> Model {
        Model::new(symbol, kind)
    }

    /// The name under which it is stored. Codelets that name the same one share it.
    #[must_use]
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }
}
