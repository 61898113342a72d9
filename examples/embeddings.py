"""Compute embeddings of graphs and plot them in two dimensions.

You learn how to get the pooled vectors of a trained ``GraphClassifier`` with ``transform`` and how to use them with
scikit-learn. The script trains on half of MUTAG, projects the embeddings to a plane with PCA, and checks with a nearest
neighbor classifier how much of the class information the plane keeps.

Writes embeddings.svg. Needs matplotlib: pip install 'sopool[report]'.
"""

from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from sopool import GraphClassifier
from sopool.data import load

# Step 1: train one network on every other molecule (MUTAG is sorted by class).
molecules = load("MUTAG")
train = molecules[::2]
test = molecules[1::2]
model = GraphClassifier(n_models=1, pool_options={"normalize": "sqrt"}, epochs=15, random_state=0).fit(train)

# Step 2: embed the training molecules, [94, 32 * 32]: the matrix W^T H^T H W of each, flattened. Fit PCA on them.
train_vectors = model.transform(train)
plane = PCA(2).fit(train_vectors)
kept = 100 * plane.explained_variance_ratio_.sum()
print(f"{train_vectors.shape[1]} numbers per molecule; two principal components keep {kept:.0f} % of the variance")

# Step 3: project the test molecules, and classify each by its five nearest training molecules in the plane.
points = plane.transform(model.transform(test))
neighbors = KNeighborsClassifier(5).fit(plane.transform(train_vectors), train.class_labels)
accuracy = neighbors.score(points, test.class_labels)
print(f"accuracy of five nearest neighbors in the plane: {100 * accuracy:.0f} % of {len(test)} test molecules")

# Step 4: plot the test molecules.
figure = Figure(layout="constrained")
axes = figure.subplots()
for name in test.classes:
    of_class = points[test.class_labels == name]
    axes.scatter(*of_class.T, label="mutagenic" if name == 1 else "not mutagenic")
axes.legend()
axes.set_title("MUTAG: test molecules")
figure.savefig("embeddings.svg")
print("The plot is in embeddings.svg.")
