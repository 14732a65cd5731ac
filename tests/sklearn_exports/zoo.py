"""`MODELS`: tiny scikit-learn models of every family that skl2onnx writes, on generated data."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from sklearn import (
    calibration,
    cluster,
    compose,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    gaussian_process,
    impute,
    linear_model,
    mixture,
    multiclass,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

ROWS, COLUMNS, CLASSES = 60, 4, 3


@dataclass(frozen=True)
class Data:
    """Features, and targets by kind."""

    x: Any
    y: Any
    test: Any


@dataclass(frozen=True)
class Model:
    """A model to be trained: what makes it, its data, and how it is exported.

    data : "classes", "two", "words" (class labels are text), "real", "targets" (two real targets), "counts" (small
        non-negative integers as features), "positive", "strings", "mixed" (columns of text and numbers), "missing".
    element : of the features in the file: "float", "double" or "int64".
    """

    name: str
    make: Callable[[], Any]
    data: str = "classes"
    element: str = "float"
    options: dict[str, Any] = field(default_factory=dict)


@cache
def data(kind: str) -> Data:
    """The data of a kind: the same in every run."""
    rng = np.random.default_rng(7)
    centers = np.array([[0, 0, 0, 0], [2, 1, -1, 0], [-1, 2, 1, 1]], float)
    labels = np.arange(ROWS) % CLASSES
    x = (centers[labels] + rng.standard_normal((ROWS, COLUMNS))).astype(np.float32)
    real = (x @ [1.0, -2.0, 0.5, 0.25] + 0.1 * rng.standard_normal(ROWS)).astype(np.float32)
    if kind == "two":
        return Data(x, labels % 2, x[:20])
    if kind == "words":
        return Data(x, np.array(["ham", "spam", "é"])[labels], x[:20])
    if kind == "real":
        return Data(x, real, x[:20])
    if kind == "targets":
        return Data(x, np.stack([real, real[::-1]], 1), x[:20])
    if kind == "several":
        return Data(x, np.stack([labels, labels[::-1]], 1), x[:20])
    if kind == "labels":
        return Data(x, np.stack([labels == 0, labels > 0, labels == 2], 1).astype(int), x[:20])
    if kind == "counts":
        return Data(
            rng.integers(0, 4, (ROWS, COLUMNS)).astype(np.float32),
            labels,
            rng.integers(0, 4, (20, COLUMNS)).astype(np.float32),
        )
    if kind == "positive":
        return Data(np.abs(x) + 0.1, np.abs(real) + 0.1, np.abs(x[:20]) + 0.1)
    if kind == "missing":
        holes = np.where(rng.random(x.shape) < 0.2, np.nan, x).astype(np.float32)
        return Data(holes, labels, holes[:20])
    if kind == "strings":
        words = np.array(["red", "green", "blue", "né"], object)[rng.integers(0, 4, (ROWS, 2))]
        return Data(words, labels, words[:20])
    return Data(x, labels, x[:20])


def mixed() -> Any:
    """A pipeline of columns of numbers and of text, as in scikit-learn's documentation."""
    numbers = pipeline.Pipeline(
        [("fill", impute.SimpleImputer(strategy="median")), ("scale", preprocessing.StandardScaler())]
    )
    words = preprocessing.OneHotEncoder(handle_unknown="ignore")
    columns = compose.ColumnTransformer([("numbers", numbers, [0, 1]), ("words", words, [2, 3])])
    return pipeline.Pipeline([("columns", columns), ("model", linear_model.LogisticRegression())])


def _pipe(*steps: Any) -> Callable[[], Any]:
    return lambda: pipeline.make_pipeline(*(step() for step in steps))


LR, TREE = linear_model.LogisticRegression, tree.DecisionTreeClassifier
FOREST = lambda **more: ensemble.RandomForestClassifier(5, max_depth=3, random_state=0, **more)  # noqa: E731
OFF = {"zipmap": False}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "LogisticRegression": LR,
    "LogisticRegressionCV": lambda: linear_model.LogisticRegressionCV(
        Cs=2, cv=2, l1_ratios=(0,), use_legacy_attributes=False
    ),
    "SGD": lambda: linear_model.SGDClassifier(random_state=0),
    "SGD log": lambda: linear_model.SGDClassifier(loss="log_loss", random_state=0),
    "SGD huber": lambda: linear_model.SGDClassifier(loss="modified_huber", random_state=0),
    "Perceptron": lambda: linear_model.Perceptron(random_state=0),
    "PassiveAggressive": lambda: linear_model.SGDClassifier(
        loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0, random_state=0
    ),
    "Ridge": linear_model.RidgeClassifier,
    "RidgeCV": linear_model.RidgeClassifierCV,
    "LinearSVC": lambda: svm.LinearSVC(random_state=0),
    "SVC rbf": svm.SVC,
    "SVC linear": lambda: svm.SVC(kernel="linear"),
    "SVC poly": lambda: svm.SVC(kernel="poly"),
    "SVC sigmoid": lambda: svm.SVC(kernel="sigmoid"),
    "SVC rbf probability": lambda: svm.SVC(probability=True, random_state=0),
    "SVC linear probability": lambda: svm.SVC(kernel="linear", probability=True, random_state=0),
    "SVC poly probability": lambda: svm.SVC(kernel="poly", probability=True, random_state=0),
    "NuSVC": lambda: svm.NuSVC(nu=0.3),
    "NuSVC probability": lambda: svm.NuSVC(nu=0.3, probability=True, random_state=0),
    "DecisionTree": lambda: TREE(max_depth=3, random_state=0),
    "ExtraTree": lambda: tree.ExtraTreeClassifier(max_depth=3, random_state=0),
    "RandomForest": FOREST,
    "ExtraTrees": lambda: ensemble.ExtraTreesClassifier(5, max_depth=3, random_state=0),
    "GradientBoosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0),
    "AdaBoost": lambda: ensemble.AdaBoostClassifier(n_estimators=4, random_state=0),
    "Bagging": lambda: ensemble.BaggingClassifier(TREE(max_depth=2), n_estimators=3, random_state=0),
    "Voting hard": lambda: ensemble.VotingClassifier(
        [("a", LR()), ("b", TREE(max_depth=2))], voting="hard", flatten_transform=False
    ),
    "Voting soft": lambda: ensemble.VotingClassifier(
        [("a", LR()), ("b", TREE(max_depth=2))], voting="soft", flatten_transform=False
    ),
    "Stacking": lambda: ensemble.StackingClassifier([("a", LR()), ("b", TREE(max_depth=2))], LR(), cv=2),
    "GaussianNB": naive_bayes.GaussianNB,
    "LDA": discriminant_analysis.LinearDiscriminantAnalysis,
    "QDA": discriminant_analysis.QuadraticDiscriminantAnalysis,
    "KNeighbors": lambda: neighbors.KNeighborsClassifier(3),
    "KNeighbors distance": lambda: neighbors.KNeighborsClassifier(3, weights="distance"),
    "RadiusNeighbors": lambda: neighbors.RadiusNeighborsClassifier(9.0),
    "MLP": lambda: neural_network.MLPClassifier((5,), max_iter=40, random_state=0),
    "MLP logistic": lambda: neural_network.MLPClassifier((5,), activation="logistic", max_iter=40, random_state=0),
    "MLP tanh": lambda: neural_network.MLPClassifier((5, 3), activation="tanh", max_iter=40, random_state=0),
    "OneVsRest": lambda: multiclass.OneVsRestClassifier(LR()),
    "Calibrated sigmoid": lambda: calibration.CalibratedClassifierCV(svm.LinearSVC(random_state=0), cv=2),
    "Calibrated isotonic": lambda: calibration.CalibratedClassifierCV(FOREST(), method="isotonic", cv=2),
    "pipeline": _pipe(preprocessing.StandardScaler, decomposition.PCA, LR),
}
COUNTED: dict[str, Callable[[], Any]] = {
    "MultinomialNB": naive_bayes.MultinomialNB,
    "BernoulliNB": naive_bayes.BernoulliNB,
    "ComplementNB": naive_bayes.ComplementNB,
    "CategoricalNB": lambda: naive_bayes.CategoricalNB(min_categories=4),
}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "LinearRegression": linear_model.LinearRegression,
    "Ridge regression": linear_model.Ridge,
    "Lasso": lambda: linear_model.Lasso(0.01),
    "ElasticNet": lambda: linear_model.ElasticNet(0.01),
    "Lars": linear_model.Lars,
    "OMP": linear_model.OrthogonalMatchingPursuit,
    "BayesianRidge": linear_model.BayesianRidge,
    "ARD": linear_model.ARDRegression,
    "Huber": linear_model.HuberRegressor,
    "TheilSen": lambda: linear_model.TheilSenRegressor(random_state=0, max_subpopulation=50),
    "RANSAC": lambda: linear_model.RANSACRegressor(random_state=0),
    "SGD regressor": lambda: linear_model.SGDRegressor(random_state=0),
    "Quantile": lambda: linear_model.QuantileRegressor(alpha=0.01),
    "SVR": svm.SVR,
    "SVR linear": lambda: svm.SVR(kernel="linear"),
    "NuSVR": svm.NuSVR,
    "LinearSVR": lambda: svm.LinearSVR(random_state=0),
    "tree regressor": lambda: tree.DecisionTreeRegressor(max_depth=3, random_state=0),
    "forest regressor": lambda: ensemble.RandomForestRegressor(5, max_depth=3, random_state=0),
    "extra trees regressor": lambda: ensemble.ExtraTreesRegressor(5, max_depth=3, random_state=0),
    "boosting regressor": lambda: ensemble.GradientBoostingRegressor(n_estimators=4, max_depth=2, random_state=0),
    "AdaBoost regressor": lambda: ensemble.AdaBoostRegressor(n_estimators=4, random_state=0),
    "bagging regressor": lambda: ensemble.BaggingRegressor(n_estimators=3, random_state=0),
    "voting regressor": lambda: ensemble.VotingRegressor([("a", linear_model.Ridge()), ("b", svm.SVR())]),
    "stacking regressor": lambda: ensemble.StackingRegressor([("a", linear_model.Ridge()), ("b", svm.SVR())], cv=2),
    "neighbors regressor": lambda: neighbors.KNeighborsRegressor(3),
    "MLP regressor": lambda: neural_network.MLPRegressor(hidden_layer_sizes=(5,), max_iter=40, random_state=0),
    "Gaussian process": lambda: gaussian_process.GaussianProcessRegressor(alpha=0.1),
}
TRANSFORMERS: dict[str, Callable[[], Any]] = {
    "StandardScaler": preprocessing.StandardScaler,
    "MinMaxScaler": lambda: preprocessing.MinMaxScaler(clip=True),
    "MaxAbsScaler": preprocessing.MaxAbsScaler,
    "RobustScaler": preprocessing.RobustScaler,
    "Normalizer l2": preprocessing.Normalizer,
    "Normalizer l1": lambda: preprocessing.Normalizer("l1"),
    "Normalizer max": lambda: preprocessing.Normalizer("max"),
    "Binarizer": lambda: preprocessing.Binarizer(threshold=0.5),
    "KBins ordinal": lambda: preprocessing.KBinsDiscretizer(
        3, encode="ordinal", quantile_method="averaged_inverted_cdf"
    ),
    "KBins one-hot": lambda: preprocessing.KBinsDiscretizer(
        3, encode="onehot-dense", quantile_method="averaged_inverted_cdf"
    ),
    "Polynomial": preprocessing.PolynomialFeatures,
    "Polynomial 3": lambda: preprocessing.PolynomialFeatures(3, interaction_only=True),
    "PowerTransformer": preprocessing.PowerTransformer,
    "PCA": lambda: decomposition.PCA(2),
    "PCA whitened": lambda: decomposition.PCA(2, whiten=True),
    "IncrementalPCA": lambda: decomposition.IncrementalPCA(2),
    "KernelPCA": lambda: decomposition.KernelPCA(2, kernel="rbf"),
    "TruncatedSVD": lambda: decomposition.TruncatedSVD(2, random_state=0),
    "SelectKBest": lambda: feature_selection.SelectKBest(k=2),
    "VarianceThreshold": feature_selection.VarianceThreshold,
    "RFE": lambda: feature_selection.RFE(LR(), n_features_to_select=2),
    "KMeans": lambda: cluster.KMeans(3, n_init=2, random_state=0),
    "MiniBatchKMeans": lambda: cluster.MiniBatchKMeans(3, n_init=2, random_state=0),
    "GaussianMixture": lambda: mixture.GaussianMixture(2, random_state=0),
    "BayesianMixture": lambda: mixture.BayesianGaussianMixture(n_components=2, random_state=0),
    "IsolationForest": lambda: ensemble.IsolationForest(n_estimators=5, random_state=0),
    "LocalOutlierFactor": lambda: neighbors.LocalOutlierFactor(n_neighbors=5, novelty=True),
    "OneClassSVM": svm.OneClassSVM,
    "TreesEmbedding": lambda: ensemble.RandomTreesEmbedding(3, max_depth=2, sparse_output=False, random_state=0),
    "FeatureUnion": lambda: pipeline.make_union(preprocessing.StandardScaler(), decomposition.PCA(2)),
    "ColumnTransformer": lambda: compose.make_column_transformer(
        (preprocessing.StandardScaler(), [0, 1]), remainder="passthrough"
    ),
    "FunctionTransformer": preprocessing.FunctionTransformer,
    "Nystroem pipeline": _pipe(preprocessing.StandardScaler, preprocessing.PolynomialFeatures, LR),
}
WITH_SCORES = ("IsolationForest", "LocalOutlierFactor")

CONTRADICTING: tuple[Model, ...] = (
    Model("OneVsOne", lambda: multiclass.OneVsOneClassifier(LR())),
    Model("PLS", lambda: cross_decomposition.PLSRegression(1), "real"),
    Model("tree, two targets", lambda: tree.DecisionTreeRegressor(max_depth=3), "targets"),
    Model(
        "MLP, labels", lambda: neural_network.MLPClassifier((5,), max_iter=40, random_state=0), "labels", options=OFF
    ),
)
"""skl2onnx 1.20 declares shapes of these files' outputs that their nodes do not have: onnxruntime warns, and runs."""
MODELS: tuple[Model, ...] = (
    *(Model(f"{name}, maps", make) for name, make in CLASSIFIERS.items() if hasattr(make(), "predict_proba")),
    *(
        Model(f"{name}, matrix", make, options={"zipmap": False} if hasattr(make(), "predict_proba") else {})
        for name, make in CLASSIFIERS.items()
    ),
    *(
        Model(
            f"{name}, two classes",
            CLASSIFIERS[name],
            "two",
            options=OFF if hasattr(CLASSIFIERS[name](), "predict_proba") else {},
        )
        for name in (
            "LogisticRegression",
            "SVC rbf",
            "SVC rbf probability",
            "SVC linear probability",
            "NuSVC probability",
            "RandomForest",
            "GradientBoosting",
            "AdaBoost",
            "LinearSVC",
            "MLP",
            "SGD log",
        )
    ),
    *(
        Model(f"{name}, text labels", CLASSIFIERS[name], "words")
        for name in ("LogisticRegression", "SVC rbf probability", "RandomForest", "KNeighbors", "GaussianNB", "MLP")
    ),
    *(
        Model(f"{name}, double", CLASSIFIERS[name], "classes", "double", OFF)
        for name in ("LogisticRegression", "RandomForest", "GaussianNB", "MLP", "SVC rbf probability")
    ),
    *(
        Model(f"{name}, int64", CLASSIFIERS[name], "counts", "int64", OFF)
        for name in ("LogisticRegression", "RandomForest", "KNeighbors")
    ),
    *(Model(name, make, "counts", options=OFF) for name, make in COUNTED.items()),
    *(Model(name, make, "real") for name, make in REGRESSORS.items()),
    *(
        Model(f"{name}, double", REGRESSORS[name], "real", "double")
        for name in ("LinearRegression", "Gaussian process")
    ),
    *(
        Model(name, make, "positive")
        for name, make in {
            "Poisson": linear_model.PoissonRegressor,
            "Gamma": linear_model.GammaRegressor,
            "Tweedie": lambda: linear_model.TweedieRegressor(power=1.5),
        }.items()
    ),
    *(
        Model(name, make, "targets")
        for name, make in {
            "two targets": linear_model.LinearRegression,
            "MultiOutput": lambda: multioutput.MultiOutputRegressor(linear_model.Ridge()),
            "MultiTaskLasso": lambda: linear_model.MultiTaskLasso(0.01),
        }.items()
    ),
    Model("MultiOutputClassifier", lambda: multioutput.MultiOutputClassifier(LR()), "several"),
    *(Model(name, make, "positive" if name == "KernelPCA" else "classes") for name, make in TRANSFORMERS.items()),
    *(Model(f"{name}, int64", TRANSFORMERS[name], "counts", "int64") for name in ("StandardScaler", "Normalizer l2")),
    *(
        Model(f"SimpleImputer {how}", lambda how=how: impute.SimpleImputer(strategy=how), "missing")
        for how in ("mean", "median", "most_frequent", "constant")
    ),
    Model("KNNImputer", lambda: impute.KNNImputer(n_neighbors=2), "missing"),
    Model("RandomForest, missing", CLASSIFIERS["RandomForest"], "missing", options=OFF),
    *(
        Model(f"{name}, strings", make, "strings")
        for name, make in {
            "OneHotEncoder": lambda: preprocessing.OneHotEncoder(sparse_output=False),
            "OrdinalEncoder": preprocessing.OrdinalEncoder,
            "OneHotEncoder first": lambda: preprocessing.OneHotEncoder(drop="first", sparse_output=False),
            "OneHotEncoder and trees": _pipe(lambda: preprocessing.OneHotEncoder(handle_unknown="ignore"), FOREST),
        }.items()
    ),
    *(
        Model(f"{name}, int64", make, "counts", "int64")
        for name, make in {
            "OneHotEncoder": lambda: preprocessing.OneHotEncoder(sparse_output=False),
            "OrdinalEncoder": preprocessing.OrdinalEncoder,
        }.items()
    ),
    Model("columns of text and numbers", mixed, "mixed"),
    Model("columns of text and numbers, matrix", mixed, "mixed", options=OFF),
    *CONTRADICTING,
)
