"""Embeddings for a plot: what a trained classifier pools each molecule into, in two dimensions.

Writes embeddings.svg. Needs matplotlib: pip install 'sopool[report]'.
"""

from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from sopool import GraphClassifier
from sopool.data import load

molecules = load("MUTAG")
train = molecules[::2]
test = molecules[1::2]
model = GraphClassifier(n_models=1, pool_options={"normalize": "sqrt"}, epochs=15, random_state=0).fit(train)

known = model.transform(train)  # [94, 32 x 32]: W^T H^T H W of each molecule
plane = PCA(2).fit(known)
kept = 100 * plane.explained_variance_ratio_.sum()
print(f"{known.shape[1]} numbers for each molecule; in the plane {kept:.0f} % of their variance is left")

places = plane.transform(model.transform(test))
near = KNeighborsClassifier(5).fit(plane.transform(known), train.class_labels)
right = near.score(places, test.class_labels)
print(f"the five nearest there are right on {100 * right:.0f} % of the molecules left out")

figure = Figure(layout="constrained")
axes = figure.subplots()
for name in test.classes:
    mine = places[test.class_labels == name]
    axes.scatter(*mine.T, label="mutagenic" if name == 1 else "not mutagenic")
axes.legend()
axes.set_title("MUTAG: molecules that were not trained on")
figure.savefig("embeddings.svg")
print("the picture is in embeddings.svg")
