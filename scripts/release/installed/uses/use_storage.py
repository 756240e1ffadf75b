"""`keywright[storage]`: the libraries are there, and an address of each kind is understood."""

import obstore
import pg8000
from keywright.serve.storage import open_storage

print(f"obstore {obstore.__version__}, pg8000 {pg8000.__version__}", open_storage.__name__)
