# Words become how often each is there.
from collections import Counter
if not payload:
    job.fail("there are no words")
return dict(Counter(payload))
